"""Frame-edge glitches: what the clocked cell and the pedestal solve, at sharp edges and at skewed paths.

A clockless latch keeps what a candidate overshoots to while its inputs move. The skew is made on purpose: 2 pF on every
gate line n, so that all positive weights lag behind all negative ones.
"""

import sys
from dataclasses import replace

from smoke import few, shrink

from cosim.base.resources import trained_network_path
from cosim.cells.clocked import CLOCKED, LATCH_NODE
from cosim.cells.schmitt import DECISION_NODE
from cosim.circuit.elements import GROUND, Capacitor, Circuit, Mos
from cosim.circuit.waveforms import Timing
from cosim.compiler.design import Design
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.compiler.size import PEDESTAL_UNITS
from cosim.engines.engine import Run
from cosim.engines.simulation.simulated import simulate_samples
from cosim.exchange.checkpoint import load_network
from cosim.tasks.testset import load_test_set
from cosim.technology.catalog import load_technology
from cosim.verbs.calibrate.find import find_calibration
from cosim.verbs.compare.agreement import compare_engines, summarize_comparison

SKEW = 2e-12  # F
SHARP = 0.001  # of a frame


def skewed(design: Design, capacitance: float) -> Design:
    """The design with a capacitor on every signal's gate line n."""
    circuit = design.assembly.circuit
    top = circuit.subcircuits[-1]
    lines = sorted(name.replace(".", "_") + "_n" for name in design.assembly.rails)
    capacitors = tuple(Capacitor(f"skew_{line}", line, GROUND, capacitance) for line in lines)
    top = replace(top, elements=(*top.elements, *capacitors))
    changed = Circuit(circuit.title, (*circuit.subcircuits[:-1], top), circuit.elements)
    return replace(design, assembly=replace(design.assembly, circuit=changed))


def clockless(design: Design) -> Design:
    """The design with plain 9T cells: both gates of the clocked cell become wires, its hold capacitor goes."""
    circuit = design.assembly.circuit
    wires = {"hold": "cand", DECISION_NODE: LATCH_NODE}
    blocks = []
    for block in circuit.subcircuits:
        if block.name == CLOCKED:
            kept = [e for e in block.elements if isinstance(e, Mos) and e.name not in ("sn", "sp", "dn", "dp")]
            nets = ("drain", "gate", "source")
            wired = tuple(replace(e, **{n: wires.get(getattr(e, n), getattr(e, n)) for n in nets}) for e in kept)
            block = replace(block, elements=wired)
        blocks.append(block)
    changed = Circuit(circuit.title, tuple(blocks), circuit.elements)
    return replace(design, assembly=replace(design.assembly, circuit=changed))


def main(name: str = "digits_d8", samples: int = 20) -> None:
    technology = load_technology("generic180")
    network, calibration = load_network(trained_network_path(name)), find_calibration(technology, 8)
    test_set = load_test_set(network, None).take(samples, 1)
    print(f"{name}, {samples} digits, 10 ms frames, state agreement of ngspice with the software")
    print(f"{'circuit':28} {'sharp edges':>12} {'and 2 pF skew':>14}")
    for label, clocked, pedestal in (
        ("clockless, no pedestal", False, 0.0),
        ("clockless, pedestal", False, PEDESTAL_UNITS),
        ("clocked, no pedestal", True, 0.0),
        ("clocked, pedestal (compiled)", True, PEDESTAL_UNITS),
    ):
        design = compile_network(network, technology, calibration, CompilerSettings(pedestal=pedestal))
        figures = []
        if not clocked:
            design = clockless(design)
        for variant in (design, skewed(design, SKEW)):
            run = Run(jobs=2, timing=Timing(edge=SHARP))
            comparison = compare_engines(variant, test_set, simulate_samples(variant, test_set, run), run)
            assert comparison is not None, "every simulation failed"
            figures.append(summarize_comparison(comparison).state_agreement)
        print(f"{label:28} {100 * figures[0]:11.2f} % {100 * figures[1]:12.2f} %", flush=True)


if __name__ == "__main__":
    shrink(globals(), "digits_d4", "1", load_test_set=few(load_test_set))
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
