"""The circuit of a whole network, and what a testbench must drive and may watch."""

from dataclasses import dataclass, field

from cosim.cells.blocks import BLOCKS
from cosim.cells.clock import CK, RUN, TAKE
from cosim.circuit.elements import Circuit


@dataclass(frozen=True)
class Carried:
    """An analog state or a pulse of a circuit: (I - rest) / step of the current I of a transistor, ampere.

    The transistor is one of the flat circuit.
    """

    device: str
    rest: float
    step: float


Shown = tuple[str, ...] | Carried  # nets of which as many are high as a whole state says, bit k 2^k times; or analog


@dataclass(frozen=True)
class Around:
    """Blocks of the chip around its network in the assembled circuit, `cosim.compiler.around`; nothing by default.

    blocks: of power, beside those of the network; pins: bias pin -> the block that its current belongs to, where that
    is not `bias`; codes: nets of the bits of each input, the lowest first, in place of a current into its pin; lines:
    nets of the classes, of which the decided one is high; drivers: pins of (sample, sampleb, begin) with them.
    ticks: of a frame, where a generator makes all phases; sampled: in how many of them outputs are sampled.
    constant: block -> what it draws beside its pins, whatever the network does, A; feeds: whether a tree on the chip
    makes the currents of all pins; start: nets and the volts near which its reference is found at work.
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
    """The transistor circuit of a network, and what a testbench must drive and may watch.

    bias_pins: pin -> current in ampere into it; input_pins: pins in order of the input index; unit_pin carries i_unit,
    pedestal_pin (None without pedestal) i_pedestal, which rides on every input, too;
    outputs: pins in order of the readout; clocks: (clk, clkb) pins per stage; decides: stage -> (dec, decb) pins, for
        stages whose cells are read late; pulses: stage -> (pulse, pulseb) pins,
        for stages whose units change their states in a pulse
    decisions: memory node -> what shows its state
    candidates: memory node -> net of its candidate
    weights: (source, target) of an edge -> its transistor, absent for a weight of 0, `a and b` for a beta (two lines)
    cell_bias: memory node -> its bias pins, in the order of its unit; rails: signals with a gate line n
    steering: weight on an And -> its bias pin; symbols: signal of a symbol comparator -> its bias pin
    held: memory that the reset turns off -> its nets that are high in state 1, that of its state first. On a chip they
        are held at V_DD until time 0: a cell whose lower threshold has fallen below 0 has two states even while the
        reset holds its candidate at 0. Which one it takes is history: on a chip that has run before, the state that it
        could not leave. So it starts there
    pushed: bias pins whose current flows a second time, onto a gate line p
    drives: memory node -> the pulse by which a quantiser moves it, 0 down, 1 not, 2 up; what lies between two of them
        is a decision that has not been made
    around: what stands around the network
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
    drives: dict[str, Carried] = field(default_factory=dict[str, Carried])
    around: Around = Around()

    @property
    def blocks(self) -> tuple[str, ...]:
        """Return the names of the blocks of this circuit of cells by which its power is counted."""
        return (*BLOCKS, *self.around.blocks)

    @property
    def reset(self) -> str:
        """Return the name of the pin of this circuit of cells that is low during the reset."""
        return RUN if self.around.ticks else "resetb"

    @property
    def phases(self) -> tuple[str, ...]:
        """Return the names of the pins that drive this circuit of cells from outside: clocks, decisions, output
        samplers."""
        if self.around.ticks:
            return (CK, TAKE) if self.around.lines else (CK,)
        return (*(pin for pair in (*self.clocks, *self.decides.values()) for pin in pair), *self.around.drivers)

    @property
    def driven(self) -> tuple[str, ...]:
        """Return the names of the pins that drive this circuit of cells from outside: clocks, decisions, output
        samplers, pulses."""
        pulses = () if self.around.ticks else self.pulses.values()
        return (*self.phases, *(pin for pair in pulses for pin in pair))

    @property
    def code_bits(self) -> tuple[str, ...]:
        """Return the names of the nets in this circuit of cells that carry the bits of all input codes."""
        return tuple(bit for code in self.around.codes for bit in code)

    @property
    def transistors(self) -> int:
        """Return the number of transistors in this circuit of cells as drawn; one of m units counts once."""
        return sum(1 for _ in self.circuit.flatten())
