"""Deep graph networks around any PyTorch Geometric convolution, one file each."""
