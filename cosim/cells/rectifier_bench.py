"""Bench of the rectifier: a candidate diode between a weight that pulls and one that pushes."""

from cosim.cells.mirror import INPUT_DIODE, SIGNAL_RAILS, input_diode, signal_rails, weight
from cosim.cells.rectifier import CANDIDATE, candidate_diode
from cosim.circuit.bench import PRECISE, Bench, Current, Dc
from cosim.circuit.elements import GROUND, Circuit, Element, Instance, Source
from cosim.technology.types import Technology

POINTS = 200


def rectifier_bench(technology: Technology, units: int, trim: float, i_push: float, i_pull_max: float) -> Bench:
    """One weight of +1 pulls, 0 ... i_pull_max ampere in POINTS steps, and one of -1 pushes with i_push.

    Saves the current through `sense`, what the diode draws from the supply.
    """
    elements: tuple[Element, ...] = (
        Source("dd", "v", "vdd", GROUND, technology.supply),
        Source("pull", "i", "a_p", GROUND, 0.0),
        Instance("a", ("a_p", "vdd"), f"{INPUT_DIODE}_{units}"),
        Instance("a_rails", ("a_p", "a_n", "vdd"), f"{SIGNAL_RAILS}_{units}"),
        Source("push", "i", "b_p", GROUND, i_push),
        Instance("b", ("b_p", "vdd"), f"{INPUT_DIODE}_{units}"),
        *weight("pos", "a_n", "cand", units, technology),
        *weight("neg", "b_p", "cand", -units, technology),
        Source("sense", "v", "vdd", "sensed", 0.0),
        Instance("cand", ("cand", "sensed"), CANDIDATE),
    )
    blocks = (input_diode(technology, units), signal_rails(technology, units, trim), candidate_diode(technology))
    circuit = Circuit("rectifier bench", blocks, elements)
    sweep = Dc("i", "pull", 0.0, i_pull_max, i_pull_max / POINTS)
    return Bench(circuit, technology, sweep, (Current("sense"),), PRECISE)
