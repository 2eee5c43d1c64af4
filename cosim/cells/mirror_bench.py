"""Bench of the mirrors: every path that a signal can take, at one current."""

from cosim.cells.bias import BIAS_DIODE, bias_diode
from cosim.cells.mirror import INPUT_DIODE, SIGNAL_RAILS, input_diode, signal_rails, weight
from cosim.cells.rectifier import CANDIDATE, candidate_diode
from cosim.circuit.bench import PRECISE, Bench, Current, Op, Voltage
from cosim.circuit.elements import GROUND, Circuit, Element, Instance, Source
from cosim.technology.types import Technology


def mirror_bench(technology: Technology, units: int, trim: float, current: float, v_node: float) -> Bench:
    """One signal of `current` into weight +1 (source n), weight -1 (p), line n (push) and a candidate diode (net cand).

    The nodes that the weights load stand at `v_node` under the supply, where a candidate diode holds them.
    """
    supply = technology.supply
    elements: tuple[Element, ...] = (
        Source("dd", "v", "vdd", GROUND, supply),
        Source("in", "i", "p", GROUND, current),
        Instance("in", ("p", "vdd"), f"{INPUT_DIODE}_{units}"),
        Instance("rails", ("p", "n", "vdd"), f"{SIGNAL_RAILS}_{units}"),
        *weight("pos", "n", "npos", units, technology),
        Source("n", "v", "vdd", "npos", v_node),
        *weight("neg", "p", "nneg", -units, technology),
        Source("p", "v", "nneg", "vpnode", 0.0),
        Source("pnode", "v", "vdd", "vpnode", v_node),
        *weight("push", "p", "npush", -units, technology),
        Source("push", "v", "npush", "lpush", 0.0),
        Instance("push", ("lpush",), BIAS_DIODE),
        Source("c", "i", "cand", GROUND, current),
        Instance("cand", ("cand", "vdd"), CANDIDATE),
    )
    blocks = (input_diode(technology, units), signal_rails(technology, units, trim), candidate_diode(technology))
    circuit = Circuit("mirror bench", (*blocks, bias_diode(technology)), elements)
    probes = (*map(Current, ("n", "p", "push")), Voltage("cand"))
    return Bench(circuit, technology, Op(), probes, PRECISE)
