"""Edited netlists against ngspice: 34 edits of a compiled network, each simulated as the designer's own deck is.

    python benchmarks/bench_edited.py [NETWORK]

`cosim compile` writes network.sp, devices.lib and testbench.sp. Each edit changes network.sp, or the current of a bias
source, by a script. ngspice then runs the edited files as they are. The same network.sp, given to `--netlist`, runs in
ngspice and in the batched engine. An edit is refused, with a line, where the file cannot be understood. Everywhere the
table has the edit's largest effect on an output current, and what cosim's runs differ by from the designer's own. On a
net that only capacitances hold, leakage decides, and simulators differ.
"""

import re
import sys
import warnings
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from smoke import shrink

import cosim
from cosim.base.errors import InputError
from cosim.base.resources import trained_network_path
from cosim.circuit.bench import Bench, Current, Voltage
from cosim.compiler.design import Design
from cosim.compiler.edited import EditedNetlist
from cosim.compiler.settings import CompilerSettings
from cosim.engines.engine import Failure, Waveforms
from cosim.engines.ngspice.process import run_deck
from cosim.engines.table import simulator_named
from cosim.verbs.compile.outputs import Exercise, format_design

NETWORK = str(trained_network_path("digits_d4"))
CELL = "schmitt_clocked"
SIMULATORS = ("ngspice", "batch")
Array = NDArray[np.float64]

# name -> (subcircuit, pattern of a line in it, what is in its place); pattern "" for the end of the subcircuit, where a
# new subcircuit goes before it; subcircuit "" for a bias source of the testbench, and by how much it changes
EDITS: dict[str, tuple[str, str, str]] = {
    "none": (CELL, "(m2 .*) m=\\S+", "\\1 m=1"),
    "W of M2": (CELL, "(m2 .*) w=\\S+", "\\1 w=6u"),
    "W of M8": (CELL, "(m8 .*) w=\\S+", "\\1 w=4u"),
    "W of M5": (CELL, "(m5 .*) w=\\S+", "\\1 w=5.5u"),
    "W of a switch": (CELL, "(msn .*) w=\\S+", "\\1 w=0.6u"),
    "W of a weight": ("row_layer1_0", "(mw3 .*) w=\\S+", "\\1 w=1.2u"),
    "L of M9": (CELL, "(m9 .*) l=\\S+", "\\1 l=6u"),
    "L of M2, an expression": (CELL, "(m2 .*) l=\\S+", "\\1 l={2*2u}"),
    "L of M1": (CELL, "(m1 .*) l=\\S+", "\\1 l=5.5u"),
    "L of a mirror's diode": ("signal_rails_8", "(mdiode .*) l=\\S+", "\\1 l=5u"),
    "m of a weight": ("row_layer1_0", "(mw2 .*) m=\\S+", "\\1 m=20"),
    "m of M2": (CELL, "(m2 .*) m=\\S+", "\\1 m=2"),
    "m of a mirror": ("signal_rails_8", "(mcopy .*) m=\\S+", "\\1 m=9"),
    "m of 0": (CELL, "(m2 .*) m=\\S+", "\\1 m=0"),
    "m of 2.5": (CELL, "(m2 .*) m=\\S+", "\\1 m=2.5"),
    "bias of a threshold": ("", "ibias_thresh_0 vdd bias_thresh_0 dc", "1.2"),
    "bias of a width": ("", "ibias_width_1 vdd bias_width_1 dc", "0.7"),
    "bias of a level": ("", "ibias_gain_0 vdd bias_gain_0 dc", "1.5"),
    "bias of no pin": ("", "ibias_none_2 vdd bias_none_2 dc", "1.5"),
    "transistor added to a cell": (CELL, "", "mextra v0 thresh 0 0 generic180_n w=1u l=5u"),
    "resistor added to a cell": (CELL, "", "rleak v0 0 3g"),
    "capacitor added to a cell": (CELL, "", "cload out 0 1p"),
    "weight added to a row": ("row_layer1_0", "", "mw99 node in_1_p vdd vdd generic180_p w=1u l=5u m=2"),
    "offset before a gate": (CELL, "m9 v0 fb ", "voff fb fbx 5m\nm9 v0 fbx "),
    "subcircuit added": ("network", "", "xleak vdd layer1_0_cand leak r=5g\n.subckt leak a b r=1g\nr1 a b {r}\n.ends"),
    "wire opened at M7": (CELL, "m7 fb fb", "m7 open fb"),
    "wire opened at a weight": ("row_layer1_0", "mw3 node", "mw3 open"),
    "wire opened at a gate": (CELL, "m9 v0 fb ", "m9 v0 open "),
    "resistor in a wire": (CELL, "m1 v0 hold", "rwire hold near 10meg\nm1 v0 near"),
    "transistor removed": (CELL, "m9 .*", "* m9"),
    "net missing": (CELL, "m9 v0 fb", "m9 v0"),
    "number misspelt": (CELL, "(m9 .*) w=\\S+", "\\1 w=5x5"),
    "model unknown": (CELL, "(m9 .*) generic180_p", "\\1 generic_p"),
    "statement unknown": (CELL, "m9 ", "q9 "),
    ".ends missing": (CELL, "\\.ends .*", "*"),
}  # fmt: skip


def edited(netlist: str, edit: tuple[str, str, str]) -> str:
    """Return a netlist with an edit of one of its subcircuits."""
    block, pattern, new = edit
    begin = netlist.index(f".subckt {block} ")
    end = netlist.index("\n.ends", begin)
    if not pattern:
        inside, subckt, block = new.partition("\n.subckt ")
        return f"{netlist[:begin]}{subckt}{block}\n{netlist[begin:end]}\n{inside}{netlist[end:]}"
    text, count = re.subn(f"^{pattern}", new, netlist[begin : end + 40], count=1, flags=re.MULTILINE)
    assert count == 1, f"nothing to edit for {edit}"
    return netlist[:begin] + text + netlist[end + 40 :]


def files_of(files: dict[str, str], edit: tuple[str, str, str]) -> tuple[str, str]:
    """Return the edited netlist as --netlist takes it, and the whole deck as the designer's ngspice runs it."""
    netlist, testbench = files["network.sp"], files["testbench.sp"]
    block, pattern, new = edit
    if block:
        own = given = edited(netlist, edit)
    else:
        found = re.search(f"^{pattern} (\\S+)$", testbench, re.MULTILINE)
        current = f"{float(found[1]) * float(new):.12g}" if found else "1n"
        own, given = netlist, f"{netlist}{pattern} {current}\n"
        testbench = re.sub(f"^{pattern} \\S+$", f"{pattern} {current}", testbench, flags=re.MULTILINE)
    deck = testbench.replace(".include network.sp", own).replace(".include devices.lib", files["devices.lib"])
    return given, re.sub(r"^\.include start\.sp$|bypass=1", "", deck, flags=re.MULTILINE)


def outputs(waves: dict[str, Array] | Waveforms, bench: Bench, design: Design, times: Array) -> tuple[Array, Array]:
    """Return output currents, A, (frames, outputs), and whether each net of a state is high, (frames, nets)."""
    nets = [probe.net for probe in bench.probes if isinstance(probe, Voltage)]
    if isinstance(waves, Waveforms):
        time, found = waves.time, [waves.probes[Current(pin)] for pin in design.assembly.outputs]
        states = [waves.probes[Voltage(net)] for net in nets]
    else:
        time, found = waves["time"], [waves[f"v{pin}#branch"] for pin in design.assembly.outputs]
        states = [waves[net] for net in nets]
    high = np.stack([np.interp(times, time, one) for one in states], axis=1) > 0.5 * bench.technology.supply
    return np.stack([np.interp(times, time, one) for one in found], axis=1), high


def main() -> None:
    """A line for each edit, and the largest differences of all."""
    given = sys.argv[1] if len(sys.argv) > 1 else NETWORK
    network = cosim.load(given)
    design = network.compile("generic180").design
    exercise, worst, refused = Exercise(), dict.fromkeys(SIMULATORS, 0.0), 0
    files, times = format_design(design, exercise), exercise.timing.sample_times(8)
    bench = replace(exercise.bench(design), from_rest=False)
    plain = run_deck(files_of(files, (CELL, "(m2 .*) m=\\S+", "\\1 m=1"))[1])
    assert not isinstance(plain, Failure), plain
    before, states_before = outputs(plain, bench, design, times)
    for name, edit in EDITS.items():
        text, deck = files_of(files, edit)
        try:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                settings = CompilerSettings(netlist=EditedNetlist("network.sp", text))
                changed = network.compile("generic180", settings=settings).design
        except InputError as error:
            refused += 1
            print(f"{name:28} refused: {error}", flush=True)
            continue
        own = run_deck(deck)
        if isinstance(own, Failure):
            print(f"{name:28} ngspice: {own}", flush=True)
            continue
        wanted, states = outputs(own, bench, design, times)
        effect, turned = 1e12 * np.abs(wanted - before).max(), (states != states_before).sum()
        line = f"{name:28} effect {effect:8.2f} pA, {turned:3} states;"
        for simulator in SIMULATORS:
            found = simulator_named(simulator).run(exercise.bench(changed), 600.0)
            if isinstance(found, Failure):
                line += f"  {simulator}: {found}"
                continue
            currents, high = outputs(found, bench, design, times)
            worst[simulator] = max(worst[simulator], error := np.abs(currents - wanted).max())
            line += f"  {simulator} {1e12 * error:7.3f} pA, {(high != states).sum()} states"
        print(line, *(f"warned: {one.message}" for one in warned), flush=True)
    shown = ", ".join(f"{name} {1e12 * error:.3f} pA" for name, error in worst.items())
    print(f"{len(EDITS) - 1} edits, {refused} refused; largest difference from the designer's own run: {shown}")


if __name__ == "__main__":
    some = ("W of M2", "net missing")
    shrink(globals(), EDITS={name: EDITS[name] for name in some}, SIMULATORS=("ngspice",))
    main()
