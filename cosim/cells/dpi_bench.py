"""Bench of the DPI: behind an input diode, in front of a node."""

from dataclasses import dataclass

from cosim.cells.bias import BIAS_DIODE, bias_diode
from cosim.cells.dpi import DPI, INTEGRATION_NODE, dpi
from cosim.cells.mirror import INPUT_DIODE, input_diode
from cosim.circuit.bench import PRECISE, Bench, Current, Tran, Voltage
from cosim.circuit.elements import GROUND, Circuit, Element, Instance, Source
from cosim.circuit.waveforms import Waveform
from cosim.technology.types import Technology


@dataclass(frozen=True)
class DpiDrive:
    """What a DPI gets: currents in A, capacitance in F, for `end` seconds in so many points."""

    i_in: Waveform
    i_tau: float
    i_g: float
    capacitance: float
    end: float
    points: int = 2000


def dpi_bench(technology: Technology, units: int, drive: DpiDrive, v_node: float) -> Bench:
    """The output is drawn from a node `v_node` under the supply. Saves the currents through `out` and `dd`, and vc."""
    elements: tuple[Element, ...] = (
        Source("dd", "v", "vdd", GROUND, technology.supply),
        Source("in", "i", "p", GROUND, drive.i_in),
        Instance("in", ("p", "vdd"), f"{INPUT_DIODE}_{units}"),
        Source("tau", "i", "vdd", "tau", drive.i_tau),
        Instance("tau", ("tau",), BIAS_DIODE),
        Source("vg", "i", "vdd", "vg", drive.i_g),
        Instance("vg", ("vg",), BIAS_DIODE),
        Instance("dpi", ("p", "vg", "tau", "node", "vdd"), f"{DPI}_1"),
        Source("out", "v", "vload", "node", 0.0),
        Source("load", "v", "vdd", "vload", v_node),
    )
    blocks = (input_diode(technology, units), bias_diode(technology), dpi(technology, units, 1, drive.capacitance))
    circuit = Circuit("DPI bench", blocks, elements)
    probes = Current("out"), Current("dd"), Voltage(f"xdpi.{INTEGRATION_NODE}")
    return Bench(circuit, technology, Tran(drive.end / drive.points, drive.end), probes, PRECISE)
