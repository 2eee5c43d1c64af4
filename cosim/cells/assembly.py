"""The circuit of a whole network, with the pins that a testbench must drive and the nets that it may watch."""

from dataclasses import dataclass, field

from cosim.cells.blocks import BLOCKS
from cosim.cells.clock import CK, RUN, TAKE
from cosim.circuit.elements import Circuit


@dataclass(frozen=True)
class StateCurrent:
    """A transistor's current I that shows an analog state, or a pulse, of a circuit: (I - rest) / step.

    device: name of the transistor in the flat circuit; rest, step: ampere.
    """

    device: str
    rest: float
    step: float


Shown = (
    tuple[str, ...] | StateCurrent
)  # nets of which as many are high as a whole state says, bit k 2^k times; or analog


@dataclass(frozen=True)
class SurroundingBlocks:
    """The blocks of a chip around its network, `cosim.compiler.around`; empty by default.

    blocks: names of those that power is counted in; pins: bias pin -> block that its current belongs to, where that is
    not `bias`; codes: for each input the nets of its code's bits, lowest first, in place of a current into its pin;
    lines: nets of the classes, high for the decided one; drivers: pins of (sample, sampleb, begin), if outputs are
    averaged. ticks: clock ticks in a frame, where a generator on the chip makes all phases; sampled: in how many of
    them outputs are sampled. constant: block -> current that it draws beside its pins, whatever the network does, A;
    feeds: whether a bias tree on the chip makes the currents of all pins; start: (net, volt) from which a simulation
    finds the reference on.
    """

    blocks: tuple[str, ...] = ()
    pins: dict[str, str] = field(default_factory=dict[str, str])
    codes: tuple[tuple[str, ...], ...] = ()
    lines: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    ticks: int = 0
    sampled: int = 0
    constant: dict[str, float] = field(default_factory=dict[str, float])
    feeds: bool = False
    start: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Assembly:
    """The transistor circuit of a network, with the pins that a testbench must drive and the nets that it may watch.

    bias_pins: pin -> current into it, ampere; input_pins: pins in the order of the inputs; unit_pin: carries i_unit;
    pedestal_pin: carries i_pedestal, which is also added to every input; None without a pedestal
    outputs: pins in the order of the readout; clocks: (clk, clkb) pins of each stage; decides: stage -> (dec, decb)
        pins, for stages whose cells are read a frame late; pulses: stage -> (pulse, pulseb) pins, for stages whose
        units change their states in a pulse
    decisions: memory node -> what shows its state
    candidates: memory node -> net of its candidate
    weights: (source, target) of an edge -> its transistor; absent for a weight of 0; `a and b` for a beta, in two lines
    cell_bias: memory node -> its bias pins, in the order of its unit; rails: signals that have a gate line n
    steering: edge from an And node -> its bias pin; symbols: signal of a symbol comparator -> the comparator's bias pin
    held: memory node that the reset turns off -> its nets that are high in state 1, the net of its state first. On a
        chip with mismatch these nets are held at V_DD until time 0. A cell whose lower threshold has fallen below 0 has
        two states even in the reset, and on a chip that has run before it may be stuck in state 1: so it starts there
    pushed: bias pins whose current flows a second time, onto a gate line p
    drives: memory node -> the pulse by which a quantiser moves it: 0 down, 1 not, 2 up; a value between two of these
        is a decision that has not been made
    around: the blocks around the network
    """

    circuit: Circuit
    ports: tuple[str, ...]
    bias_pins: dict[str, float]
    input_pins: tuple[str, ...]
    unit_pin: str
    pedestal_pin: str | None
    outputs: tuple[str, ...]
    clocks: tuple[tuple[str, str], ...]
    decides: dict[int, tuple[str, str]]
    pulses: dict[int, tuple[str, str]]
    decisions: dict[str, Shown]
    candidates: dict[str, str]
    weights: dict[tuple[str, str], str]
    cell_bias: dict[str, tuple[str, ...]]
    rails: frozenset[str]
    steering: dict[tuple[str, str], str]
    symbols: dict[str, str]
    held: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    pushed: frozenset[str] = frozenset()
    drives: dict[str, StateCurrent] = field(default_factory=dict[str, StateCurrent])
    around: SurroundingBlocks = SurroundingBlocks()

    @property
    def blocks(self) -> tuple[str, ...]:
        """Return the names of the blocks in which the power of this circuit is counted."""
        return (*BLOCKS, *self.around.blocks)

    @property
    def reset(self) -> str:
        """Return the name of this circuit's pin that is low during the reset."""
        return RUN if self.around.ticks else "resetb"

    @property
    def phases(self) -> tuple[str, ...]:
        """Return the names of the phase pins driven from outside: clocks, decision clocks, output samplers."""
        if self.around.ticks:
            return (CK, TAKE) if self.around.lines else (CK,)
        return (*(pin for pair in (*self.clocks, *self.decides.values()) for pin in pair), *self.around.drivers)

    @property
    def driven(self) -> tuple[str, ...]:
        """Return the names of all timing pins driven from outside: clocks, decision clocks, output samplers, pulses."""
        pulses = () if self.around.ticks else self.pulses.values()
        return (*self.phases, *(pin for pair in pulses for pin in pair))

    @property
    def transistors(self) -> int:
        """Return the number of drawn transistors; one of m unit devices counts once."""
        return sum(1 for _ in self.circuit.flatten())
