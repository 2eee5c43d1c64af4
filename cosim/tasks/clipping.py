"""Inputs beyond the range of a network's encoding: they are clipped, and the network never sees by how much."""

from dataclasses import dataclass

import numpy as np

from cosim.network.types import InputEncoding
from cosim.tasks.testset import TestSet

_ROUNDING = 1e-6  # of the range: what single precision makes of its ends


@dataclass(frozen=True)
class Clipping:
    """`values` of `total` valid ones in `samples` of `tested` samples are clipped, in `features` features.

    The farthest is `value`, of `feature`, whose range is low to high.
    """

    values: int
    total: int
    samples: int
    tested: int
    features: int
    feature: int
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        beyond = max(self.low - self.value, self.value - self.high) / (self.high - self.low)
        return (
            f"{self.values} of {self.total} values, in {self.samples} of {self.tested} samples and {self.features} "
            f"feature{'s' if self.features > 1 else ''}, lie beyond the range of the network's encoding and are "
            f"clipped; the farthest: {self.value:.4g} of feature {self.feature}, {100 * beyond:.3g} % beyond "
            f"{self.low:.4g} to {self.high:.4g}"
        )


def find_clipping(encoding: InputEncoding, test_set: TestSet) -> Clipping | None:
    """Count the valid values of a task's data to test with that the encoding clips; None where it clips none.

    Values that round to an end of the range are not counted: half a level, or single precision.
    """
    x, lengths = test_set.x, test_set.lengths
    slack = _ROUNDING if encoding.levels is None else 0.5 / encoding.levels
    places = (x - encoding.offset) / encoding.scale
    beyond = np.maximum(-places, places - 1)
    valid = (np.arange(x.shape[1])[None, :] < lengths[:, None])[:, :, None]
    clipped = (beyond > slack) & valid
    if not clipped.any():
        return None
    sample, step, feature = np.unravel_index(np.where(clipped, beyond, 0).argmax(), x.shape)
    low = float(encoding.offset[feature])
    return Clipping(
        int(clipped.sum()),
        int(valid.sum()) * x.shape[2],
        int(clipped.any(axis=(1, 2)).sum()),
        len(x),
        int(clipped.any(axis=(0, 1)).sum()),
        int(feature),
        float(x[sample, step, feature]),
        low,
        low + float(encoding.scale[feature]),
    )
