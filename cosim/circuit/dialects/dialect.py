"""The language of a simulator: netlist, device cards, a testbench beside them, and names of what it prints."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from cosim.circuit.bench import Bench, DrainCurrent, Probe, Tolerances, Voltage
from cosim.circuit.deck import format_number
from cosim.circuit.elements import Circuit
from cosim.errors import InputError
from cosim.technology.devices import Size
from cosim.technology.types import Technology

START_FILE = "start.sp"  # the operating point that a testbench with `skip_still` begins at


@dataclass(frozen=True)
class Files:
    """What the files of a compiled network are called."""

    netlist: str = "network.sp"
    devices: str = "devices.lib"
    testbench: str = "testbench.sp"


@dataclass(frozen=True)
class Dialect:
    """How a simulator is written to.

    network: the netlist of a circuit; devices: cards of these sizes, and how to use the foundry's own library;
    testbench: the lines of an input file beside `files`; printed: what a probe is called where the simulator prints it.
    """

    name: str
    network: Callable[[Circuit, Technology], str]
    devices: Callable[[Technology, Iterable[Size]], str]
    testbench: Callable[[Bench], list[str]]
    printed: Callable[[Probe], str]
    files: Files = Files()

    def format_testbench(self, bench: Bench) -> str:
        """A complete input file of a transient beside netlist and cards."""
        return "\n".join(self.testbench(bench)) + "\n"


def tolerance_texts(tolerances: Tolerances) -> dict[str, str]:
    """Each tolerance as a number in text."""
    return {name: format_number(value) for name, value in asdict(tolerances).items()}


def spice_probe(probe: Probe) -> str:
    """v(net) or i(source), as SPICE writes it. Raises InputError for what only ngspice is asked for."""
    match probe:
        case Voltage(net):
            return f"v({net})"
        case DrainCurrent(device):
            raise InputError(
                f"only ngspice saves a transistor's current, here that of {device}; use it, or leave it out"
            )
        case _:
            return f"i(v{probe.source})"
