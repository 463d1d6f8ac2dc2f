"""What the Triton kernels of all models share; those of one model lie in its own folder."""
