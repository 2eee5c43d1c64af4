"""Operating points and sweeps in the batched engine, as transients so slow that charges do not matter.

A sweep is a ramp of its source, which rests at the first value before. The ramp lasts 1e5 s however long the sweep is,
because steps follow what happens, not time: 1 V in 1e5 s takes 10 aA through 1 pF, 1e-4 of 0.1 pA. Each value of the
sweep is a corner of the ramp, where a step ends, so no value is interpolated; on a smooth characteristic it is one step
of implicit Euler from corner to corner. At the end of a branch no such step converges, and shorter ones follow the jump
to another branch as a transient.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.bench import Bench, Dc, Op, Tran, held
from cosim.circuit.elements import Element, Source
from cosim.engines.batch.circuit import Unsupported
from cosim.engines.engine import Waveforms

Array = NDArray[np.float64]
_SECONDS = 1e5  # of a ramp
_POINT = 1.0  # s; the transient of an operating point, some seven steps
_STEP = (
    1e4  # of the distance between two corners; so large because the first step behind a corner is a small share of it
)


def as_transient(bench: Bench) -> Bench:
    """Return a bench as the batched engine runs it: with a transient in place of an operating point or a sweep.

    Raises Unsupported for a source that a sweep does not find at the top level, and for noise without time.
    """
    match bench.analysis:
        case Tran():
            return bench
        case _ if bench.noise is not None:
            raise Unsupported("noise of an operating point or of a sweep")
        case Op():
            return held(replace(bench, analysis=Tran(_POINT, _POINT)), _POINT)
        case Dc() as sweep:
            at, values = _corners(sweep)
            steady = held(replace(bench, analysis=Tran(_STEP * float(at[0]), float(at[-1]))), float(at[-1]))
            points = zip([0.0, *at.tolist()], [sweep.start, *values.tolist()], strict=True)
            return _with_source(steady, sweep, tuple(points))


def _corners(sweep: Dc) -> tuple[Array, Array]:
    """Return the times of a sweep's corners, s, and its values there, the last one at or before `stop`."""
    intervals = int((sweep.stop - sweep.start) / sweep.step * (1 + 1e-9))
    steps = np.arange(intervals + 1, dtype=np.float64)
    return (_SECONDS / intervals) * (1.0 + steps), sweep.start + sweep.step * steps


def _with_source(bench: Bench, sweep: Dc, points: tuple[tuple[float, float], ...]) -> Bench:
    """Return a copy of a bench whose swept source has these points, (s, value)."""

    def driven(one: Element) -> Element:
        swept = isinstance(one, Source) and (one.kind, one.name) == (sweep.kind, sweep.source)
        return replace(one, value=points) if swept else one

    elements = tuple(map(driven, bench.circuit.elements))
    if elements == bench.circuit.elements:
        raise Unsupported(f"a sweep of {sweep.kind}{sweep.source}, which is not at the top level")
    return replace(bench, circuit=replace(bench.circuit, elements=elements))


def of_analysis(bench: Bench, waves: Waveforms) -> Waveforms:
    """Return the waveforms of a bench's own analysis from those of its transient, over the values of its sweep."""
    match bench.analysis:
        case Tran():
            return waves
        case Op():
            return Waveforms(np.empty(0), {probe: values[-1:] for probe, values in waves.probes.items()})
        case Dc() as sweep:
            at, swept = _corners(sweep)
            places = np.searchsorted(waves.time, at)
            return Waveforms(swept, {probe: values[places] for probe, values in waves.probes.items()})
