"""Bias currents of a network: where they come from, and what that makes of them in another condition."""

from typing import Literal, get_args

from cosim.base.errors import CosimError, InputError, SimulationError
from cosim.cells.reference import reference_bench
from cosim.compiler.design import Condition, Design
from cosim.engines.simulation.inference import run_bench
from cosim.engines.table import NGSPICE
from cosim.technology.conditions import format_conditions, nominal
from cosim.technology.types import Technology

Bias = Literal["constant", "reference", "tracking"]
WORDS: dict[Bias, str] = {
    "constant": "ideal bias currents, the same in every condition",
    "reference": "bias currents that change as the chip's reference cell does, input currents that do not",
    "tracking": "bias and input currents that both change as the chip's reference cell does",
}
ON_CHIP = "bias currents of the reference and the tree on the chip (--with bias)"
SETTLED = 1.0  # s after the supply comes up
STARTED = 0.1e-9  # A: at rest, the reference's other operating point, it leaks some pA
_measured: dict[tuple[str, str], float] = {}  # (technology, simulator) -> A; a run takes seconds, a sweep asks again


def bias_words(design: Design, bias: Bias) -> str:
    """Return a verb's phrase for where the bias currents of a circuit come from under this assumption."""
    return ON_CHIP if design.assembly.around.feeds else WORDS[bias]


def bias_name(design: Design, bias: Bias) -> str:
    """Return the assumption on bias currents of a verb's run in two or three words, as in "tracking bias"."""
    return "bias of its tree" if design.assembly.around.feeds else f"{bias} bias"


def applicable_biases(design: Design, technology: Technology, simulator: str = NGSPICE) -> tuple[tuple[Bias, ...], str]:
    """Return the assumptions on bias currents under which a verb can look at a circuit, and why the others cannot,
    empty for none.

    A tree on the chip leaves no pin to scale; a reference that cannot be measured at the nominal point gives no factor.
    """
    if design.assembly.around.feeds:
        return ("constant",), ""
    try:
        _reference_current(nominal(technology, design.calibration), simulator)
    except CosimError as error:
        return ("constant",), str(error)
    return get_args(Bias), ""


def measure_reference(technology: Technology, simulator: str = NGSPICE) -> tuple[float, float]:
    """Measure for a verb's `--bias reference` (current of one output, current from the supply) of the reference in this
    condition, ampere.

    Raises SimulationError that names the condition when it does not start, InputError where the library has no devices
    of its sizes.
    """
    where = f"current reference of {technology.name}, {format_conditions(technology)}"
    try:
        bench = reference_bench(technology, SETTLED)
    except InputError as error:
        raise InputError(f"{where}: {error}; without devices of its stacks, use --bias constant") from None
    waves = run_bench(bench, where, simulator)
    current = float(waves.through("out")[-1])
    if current < STARTED:
        raise SimulationError(f"{where}: it does not start and gives {current:.3g} A; use --bias constant there")
    return current, float(waves.delivered("dd")[-1])


def biased(design: Design, technology: Technology, bias: Bias, simulator: str = NGSPICE) -> Condition:
    """Return a design's condition in a verb's run: this technology, and bias currents from one of three sources.

    constant: as at the nominal point. reference: as the reference cell changes, inputs as at the nominal point;
    tracking: bias currents and inputs as the reference cell changes. Raises SimulationError as `measure_reference`, and
    InputError where a tree on the chip makes the currents.
    """
    factor = 1.0
    if bias != "constant":
        if design.assembly.around.feeds:
            raise InputError(
                f"--bias {bias} scales sources at pins, and --with bias leaves none; leave one of them out"
            )
        compiled_for = nominal(technology, design.calibration)
        factor = _reference_current(technology, simulator) / _reference_current(compiled_for, simulator)
    return Condition(technology, factor, factor if bias == "tracking" else 1.0)


def _reference_current(technology: Technology, simulator: str) -> float:
    """Return the current of one output in ampere, measured once in a process; errors as in `measure_reference`."""
    key = repr(technology), simulator
    if key not in _measured:
        _measured[key] = measure_reference(technology, simulator)[0]
    return _measured[key]
