"""Where the bias currents of a network come from, and what that makes of them in another condition."""

from typing import Literal

from cosim.cells.reference import reference_bench
from cosim.design import Condition, Design
from cosim.engines.table import NGSPICE
from cosim.errors import InputError, SimulationError
from cosim.simulation.single import run_bench
from cosim.technology.conditions import format_conditions, nominal
from cosim.technology.types import Technology

Bias = Literal["constant", "reference", "tracking"]
SETTLED = 1.0  # s after the supply comes up
STARTED = 0.1e-9  # A: at rest, the reference's other operating point, it leaks some pA


def measure_reference(technology: Technology, simulator: str = NGSPICE) -> tuple[float, float]:
    """(current of one output, current from the supply) of the reference in this condition, ampere.

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
    """The condition of a design with this technology, its bias currents from one of three sources.

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
        factor = measure_reference(technology, simulator)[0] / measure_reference(compiled_for, simulator)[0]
    return Condition(technology, factor, factor if bias == "tracking" else 1.0)
