"""Sources of a circuit's bias currents, and how the currents change with corner, temperature and supply."""

from typing import Literal, get_args

from cosim.base.errors import CosimError, InputError, SimulationError
from cosim.cells.reference import reference_bench
from cosim.compiler.design import Condition, Design
from cosim.engines.simulation.inference import run_bench
from cosim.engines.table import reference_simulator
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
    """Return a phrase that says where a circuit's bias currents come from; bias: the assumption made in the run."""
    return ON_CHIP if design.assembly.around.feeds else WORDS[bias]


def bias_name(design: Design, bias: Bias) -> str:
    """Return the assumption on a circuit's bias currents in two or three words, such as "tracking bias"."""
    return "bias of its tree" if design.assembly.around.feeds else f"{bias} bias"


def applicable_biases(
    design: Design, technology: Technology, simulator: str | None = None
) -> tuple[tuple[Bias, ...], str]:
    """Return the assumptions on bias currents that fit a circuit, and the reason why others do not fit ("" if all do).

    Only "constant" fits in two cases: a bias tree on the chip makes the currents, so that no pin is left to scale; or
    the current reference cannot be measured at the nominal point.
    """
    if design.assembly.around.feeds:
        return ("constant",), ""
    try:
        _reference_current(nominal(technology, design.calibration), simulator)
    except CosimError as error:
        return ("constant",), str(error)
    return get_args(Bias), ""


def measure_reference(technology: Technology, simulator: str | None = None) -> tuple[float, float]:
    """Simulate the current reference of a technology; return (current of one output, current from the supply), A.

    Raises SimulationError, with the condition, when the reference does not start; InputError where the technology's
    library lacks devices of the sizes that the reference needs.
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


def biased(design: Design, technology: Technology, bias: Bias, simulator: str | None = None) -> Condition:
    """Return the condition of a run: this technology, with bias and input currents scaled as `bias` says.

    constant: all currents as at the nominal point. reference: bias currents change as the output of the reference cell
    does, input currents stay nominal. tracking: bias and input currents both change with the reference cell. Raises
    SimulationError as `measure_reference`; InputError for all but constant where a bias tree on the chip makes the
    currents.
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


def _reference_current(technology: Technology, simulator: str | None) -> float:
    """Return the current of one output of the reference cell, A, kept once measured; raises as `measure_reference`."""
    simulator = simulator or reference_simulator(technology)
    key = repr(technology), simulator
    if key not in _measured:
        _measured[key] = measure_reference(technology, simulator)[0]
    return _measured[key]
