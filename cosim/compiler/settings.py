"""Settings of a compilation, and what a pass knows as well as the graph."""

from dataclasses import dataclass

from cosim.base.bounds import COMPARATOR_DEVICES as DEVICES
from cosim.base.bounds import HEADROOM as HEADROOM_BOUNDS
from cosim.base.bounds import I_UNIT as I_UNIT_BOUNDS
from cosim.base.bounds import T_STEP, TAU
from cosim.base.errors import InputError
from cosim.base.text import shown
from cosim.circuit.waveforms import Timing
from cosim.compiler.lower import HEADROOM
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

    i_unit: ampere per software 1.0; saturate: weights beyond the largest mirror are cut, not refused; pedestal: what a
    signal of 0 carries, in units; cell, headroom: as in `lower`; comparator_devices: in parallel in each comparator of
    a ladder, counter, toggle or register; t_step: of a frame, s; tau: of the ladders' DPIs, s, None for TAU_FRAMES of a
    frame; around: which of AROUND stand around the network, and fit: what was measured of them, which `compile_for`
    finds.
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
    fit: ChipFit | None = None

    def __post_init__(self) -> None:
        """Raise InputError for a number that no circuit could be compiled with."""
        I_UNIT_BOUNDS.check("i_unit", self.i_unit, "choose another `i_unit`")
        HEADROOM_BOUNDS.check("headroom", self.headroom, "choose another `headroom`")
        DEVICES.check("comparator_devices", self.comparator_devices, "choose another `comparator_devices`")
        T_STEP.check("t_step", self.t_step, "choose another `t_step`")
        if self.tau is not None:
            TAU.check("tau", self.tau, "choose another `tau`")

    @property
    def slow(self) -> float:
        """Return the compilation's time constant of slow units, s."""
        return TAU_FRAMES * self.t_step if self.tau is None else self.tau


def parse_around(text: str | None) -> tuple[str, ...]:
    """Return the blocks around a compiled network that a list such as `inputs,decision` names, in AROUND's order.

    Raises InputError.
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
    """A job for the compiler: the network, its origin for messages, and settings.

    units: unit devices per weight 1.0.
    """

    network: Network
    origin: str
    settings: CompilerSettings
    units: int


@dataclass(frozen=True)
class Target(CompilationJob):
    """A job for the compiler with the technology and calibration that it compiles for."""

    technology: Technology
    calibration: Calibration
