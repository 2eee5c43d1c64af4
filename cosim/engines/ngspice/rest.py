"""Where a network stands before its first frame: found once, and every sample's transient starts there.

The decks of one network differ in their frames alone, so at time 0 they are one circuit. Its operating point can take
longer than the transient behind it (self-cascodes; ngspice steps gmin, then the sources), and there every device has to
be evaluated: with `bypass` ngspice 39 accepts points with milliamperes. From a known point on, `bypass` skips devices
whose terminals stand still within the tolerances and halves the time; the readout differs from the precise run by 0.002
i_unit rms (benchmarks/bench_simulator.py). It needs reltol 1e-4: at 1e-3 Newton's method let a cell far from its
thresholds fall into its other state at a clock edge.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from cosim.circuit.deck import fold, format_number
from cosim.engines.ngspice.options import relaxed
from cosim.engines.ngspice.session import run_deck
from cosim.engines.outcome import Failure, FailureKind, Waveforms

_GAP = r"(?:\s|\n\+)+"
_STAIRS = re.compile(rf"pwl\(0e\+00{_GAP}(-?\d[^\s)]*)[^)]*\)")
_FOLDED = r"[^\n]*(?:\n\+[^\n]*)*"
_SAVE = re.compile(rf"^\.save {_FOLDED}", re.MULTILINE)
_AT_ONCE = ".tran 1e-05 1e-05"
_ANALYSIS = re.compile(r"^\.tran (\S+)[^\n]*", re.MULTILINE)


def run_from_rest(deck: str) -> Waveforms | Failure:
    """Run the transient of a deck from its resting point; a time step that collapsed gets a second, relaxed try.

    A failure carries the deck as it was given, which finds the resting point by itself.
    """
    voltages = _rest(resting(deck))
    if isinstance(voltages, Failure) and voltages.kind is not FailureKind.CONVERGENCE:
        return replace(voltages, deck=deck)
    waves = voltages if isinstance(voltages, Failure) else run_deck(started(deck, dict(voltages)))
    if isinstance(waves, Failure) and waves.kind is FailureKind.CONVERGENCE:
        waves = run_deck(relaxed(deck))
    return replace(waves, deck=deck) if isinstance(waves, Failure) else waves


def resting(deck: str) -> str:
    """The deck that asks for all node voltages at time 0: the same text for all samples of a network.

    A transient, because `.ic` holds nodes in its operating point alone.
    """
    return _ANALYSIS.sub(_AT_ONCE, _SAVE.sub(".save all", _still(deck)))


def held(deck: str, seconds: float) -> str:
    """The deck whose sources stay for so many second what they are at time 0."""
    return _ANALYSIS.sub(lambda found: f".tran {found[1]} {format_number(seconds)} 0e+00 {found[1]}", _still(deck))


def _still(deck: str) -> str:
    return _STAIRS.sub(r"dc \1", deck)


def started(deck: str, voltages: dict[str, float]) -> str:
    """The deck that begins at these node voltages, in volt, with `bypass`."""
    skipping = deck.replace("bypass=0", "bypass=1")
    return _ANALYSIS.sub(lambda analysis: f"{format_point(voltages)}\n{analysis[0]}", skipping)


def format_point(voltages: Mapping[str, float]) -> str:
    """The statement with which ngspice begins to look for an operating point here; node -> volt."""
    guesses = (f"v({net})={format_number(value)}" for net, value in voltages.items())
    return "\n".join(fold(f".nodeset {' '.join(guesses)}"))


def resting_point(deck: str) -> dict[str, float] | Failure:
    """Node -> volt at time 0 of a deck."""
    voltages = _rest(resting(deck))
    return voltages if isinstance(voltages, Failure) else dict(voltages)


@lru_cache(maxsize=2)
def _rest(deck: str) -> tuple[tuple[str, float], ...] | Failure:
    waves = run_deck(deck)
    if isinstance(waves, Failure):
        return waves
    return tuple((name, float(values[0])) for name, values in waves.items() if name != "time" and "#" not in name)
