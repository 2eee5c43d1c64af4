"""Settings of a compilation, and the job that passes receive beside the graph."""

from dataclasses import dataclass

from cosim.base.bounds import COMPARATOR_DEVICES as DEVICES
from cosim.base.bounds import HEADROOM as HEADROOM_BOUNDS
from cosim.base.bounds import I_UNIT as I_UNIT_BOUNDS
from cosim.base.bounds import T_STEP, TAU
from cosim.base.errors import InputError
from cosim.base.text import shown
from cosim.circuit.waveforms import Timing
from cosim.compiler.edited import EditedNetlist
from cosim.compiler.lower import HEADROOM
from cosim.compiler.overrides import Overrides
from cosim.network.ir.nodes import PEDESTAL_UNITS
from cosim.network.types import Network
from cosim.technology.calibration import Calibration, ChipFit
from cosim.technology.scale import I_UNIT
from cosim.technology.types import Technology
from cosim.units.placement import Circuit
from cosim.units.sizing import TAU_FRAMES

AROUND = ("inputs", "decision", "clock", "bias")  # in the order in which they are added


@dataclass(frozen=True)
class CompilerSettings:
    """Settings of the compiler.

    i_unit: ampere per software 1.0; saturate: whether weights beyond the largest mirror are cut, not refused; pedestal:
    current of a signal of 0, in software units; cell, headroom: see `lower`; comparator_devices: devices in parallel in
    each comparator of a ladder, counter, toggle, reflector or register; t_step: length of a frame, s; tau: time
    constant of the ladders' DPIs, s, None for TAU_FRAMES of a frame; around: blocks of AROUND that are added around the
    network; overrides: changes to transistors and bias currents of the circuit; netlist: a designer's, in place of the
    circuit; fit: measurements of the blocks around, which `compile_for` finds.
    """

    i_unit: float = I_UNIT
    saturate: bool = False
    pedestal: float = PEDESTAL_UNITS
    cell: Circuit = "auto"
    headroom: int = HEADROOM
    comparator_devices: int = 1
    t_step: float = Timing().t_step
    tau: float | None = None
    around: tuple[str, ...] = ()
    overrides: Overrides = Overrides()
    netlist: EditedNetlist | None = None
    fit: ChipFit | None = None

    def __post_init__(self) -> None:
        """Raise InputError for a number with which no circuit could be compiled."""
        I_UNIT_BOUNDS.check("i_unit", self.i_unit, "choose another `i_unit`")
        HEADROOM_BOUNDS.check("headroom", self.headroom, "choose another `headroom`")
        DEVICES.check("comparator_devices", self.comparator_devices, "choose another `comparator_devices`")
        T_STEP.check("t_step", self.t_step, "choose another `t_step`")
        if self.overrides and self.netlist is not None:
            raise InputError(
                "`netlist` and `overrides` both change the circuit; write all changes into the netlist, and leave "
                "`overrides` out"
            )
        if self.tau is not None:
            TAU.check("tau", self.tau, "choose another `tau`")

    @property
    def slow(self) -> float:
        """Return the time constant of slow units (ladders, tau-cells), s."""
        return TAU_FRAMES * self.t_step if self.tau is None else self.tau


def parse_around(text: str | None) -> tuple[str, ...]:
    """Return the blocks that a list such as `inputs,decision` names, in AROUND's order; () for None.

    Raises InputError for a name that is not in AROUND.
    """
    if text is None:
        return ()
    words = [word.strip() for word in text.split(",")]
    if strange := next((word for word in words if word not in AROUND), None):
        raise InputError(
            f"`around` must name blocks of {', '.join(AROUND)}, not {shown(strange)}; separate them by commas"
        )
    return tuple(block for block in AROUND if block in words)


@dataclass(frozen=True)
class CompilationJob:
    """A job for the compiler: network, settings, and origin, the network's file for messages.

    units: unit devices per weight 1.0.
    """

    network: Network
    origin: str
    settings: CompilerSettings
    units: int


@dataclass(frozen=True)
class Target(CompilationJob):
    """A job for the compiler with the technology, and its calibration, on which the network is to be built."""

    technology: Technology
    calibration: Calibration
