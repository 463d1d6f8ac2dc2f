"""Models the documents compare with, under the same contract, one file each."""
