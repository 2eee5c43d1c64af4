"""One kernel for each channel, over the steps in front."""

from torch import Tensor, nn


def convolve(u: Tensor, kernel: Tensor) -> Tensor:
    """Convolve u (n, time, H) with one causal kernel (H, G + 1) a channel; zeros precede the first step."""
    padded = nn.functional.pad(u.transpose(1, 2), (kernel.shape[1] - 1, 0))
    return nn.functional.conv1d(padded, kernel.flip(1)[:, None], groups=len(kernel)).transpose(1, 2)
