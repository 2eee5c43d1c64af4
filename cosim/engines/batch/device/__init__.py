"""The batch engine on a CUDA device: the same kernels, one bench a thread."""
