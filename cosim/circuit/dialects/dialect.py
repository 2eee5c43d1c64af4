"""The language of a simulator: its netlists, device cards and testbenches, and the names in its results."""

import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace

from cosim.base.errors import InputError
from cosim.circuit.bench import Bench, Current, DrainCurrent, Probe, Tolerances, Voltage
from cosim.circuit.deck import Language, format_circuit, format_number
from cosim.circuit.elements import Circuit
from cosim.technology.foundry import ModelCard, Size, card_name, cards_source, device_cards
from cosim.technology.types import Technology

START_FILE = "start.sp"  # the operating point that a testbench with `skip_still` begins at


@dataclass(frozen=True)
class FileNames:
    """Names of the netlist files of a compiled network."""

    netlist: str = "network.sp"
    devices: str = "devices.lib"
    testbench: str = "testbench.sp"


@dataclass(frozen=True)
class Dialect:
    """The input language of a simulator: its netlists, device cards and testbenches as text.

    language: syntax of its netlists; devices: function that formats the device cards of these sizes, with a comment on
    the foundry's own library; testbench: function that returns the lines of an input file which includes `files`;
    printed: function that returns the name of a probe in the simulator's results; library: function that returns the
    statements by which an input file takes the foundry's own library, None where cosim writes none for the simulator.
    """

    name: str
    language: Language
    devices: Callable[[Technology, Iterable[Size]], str]
    testbench: Callable[[Bench], list[str]]
    printed: Callable[[Probe], str]
    files: FileNames = FileNames()
    library: Callable[[Technology], list[str]] | None = None

    def network(self, circuit: Circuit, technology: Technology) -> str:
        """Format the netlist of a circuit in this dialect."""
        return format_circuit(circuit, technology, self.language)

    def format_testbench(self, bench: Bench) -> str:
        """Format the complete input file of a transient, which includes netlist and device cards as files."""
        return "\n".join(self.testbench(bench)) + "\n"


def with_foundry_devices(dialect: Dialect) -> Dialect:
    """Return a dialect whose transistors are devices of the foundry's own library, in place of cosim's cards.

    Raises InputError for a simulator that the foundry's library is not written for.
    """
    library = dialect.library
    if library is None:
        raise InputError(f"--models foundry is for ngspice and spectre, not for {dialect.name}; leave it out")

    def devices(technology: Technology, sizes: Iterable[Size]) -> str:
        device_cards(technology, sizes)  # a size that the library does not have is refused
        lines = [f"{dialect.language.comment} {cards_source(technology)}", *library(technology)]
        return "\n".join(lines) + "\n"

    return replace(dialect, language=replace(dialect.language, foundry=True), devices=devices)


def tolerance_texts(tolerances: Tolerances) -> dict[str, str]:
    """Return a bench's tolerances, name -> value as text for a netlist."""
    return {name: format_number(value) for name, value in asdict(tolerances).items()}


def spice_probe(probe: Voltage | Current) -> str:
    """Return a probe as SPICE decks write it: v(net) or i(source)."""
    return f"v({probe.net})" if isinstance(probe, Voltage) else f"i(v{probe.source})"


def transistor_name(probe: DrainCurrent) -> str:
    """Return the name in netlists of a probe's transistor: `xnetwork.xcell.m4` for `network.cell.4`."""
    *path, name = probe.device.split(".")
    return ".".join((*(f"x{instance}" for instance in path), f"m{name}"))


SPICE_CARD = ".model {name} {kind}mos level=54 {fields}"

# Of BSIM4 in ngspice, but not of Berkeley's: limits of the operating range that it warns about.
_NGSPICE_ONLY = re.compile(r"v(gs|gd|gb|ds|bs|bd)r?_max")


@dataclass(frozen=True)
class CardForm:
    """The form of a device card in a dialect: `{name}`, `{kind}` n or p, `{sign}` 1 or -1, `{fields}` the parameters.

    opening: statements before the first card; version: function from a BSIM4 version to the dialect's nearest one;
    written: how a card states that; defaults: parameters to add to a card that leaves them out, where the simulator's
    defaults differ from ngspice's; replaced: parameters whose value on a card must be changed; include: statement for a
    foundry's library, `{}` its section; empty if no kit has a library for the simulator.
    """

    language: Language
    card: str
    version: Callable[[str], str]
    written: str = "version={}"
    opening: tuple[str, ...] = ()
    defaults: tuple[tuple[str, float], ...] = ()
    replaced: tuple[tuple[str, float], ...] = ()
    include: str = ".lib 'FILE' {}"

    def format_devices(self, technology: Technology, sizes: Iterable[Size]) -> str:
        """Format the device cards of these sizes in the dialect, and comments on the foundry's own library."""
        sizes = set(sizes)
        comment = self.language.comment
        lines = [f"{comment} {cards_source(technology)}", *self.opening]
        lines += [f"{comment} {line}" for line in self._about_the_library(technology, sizes)]
        for card in device_cards(technology, sizes):
            lines += self._format_card(card)
        return "\n".join(lines) + "\n"

    def _format_card(self, card: ModelCard) -> list[str]:
        """Format one device card as lines, after comments on the parameters that only ngspice knows."""
        known = {key: value for key, value in card.parameters.items() if key != "level"}
        unknown = [key for key in known if _NGSPICE_ONLY.fullmatch(key)]
        numbers = {**known, **{key: value for key, value in self.defaults if key not in known}}
        numbers |= {key: value for key, value in self.replaced if key in known}
        fields = [f"{key}={value:.12g}" for key, value in numbers.items() if key not in unknown]
        lines: list[str] = []
        if card.version:
            taken = self.version(card.version)
            fields.insert(0, self.written.format(taken))
            lines += [f"BSIM4 {card.version}, here version={taken}"] if taken != card.version else []
        if unknown:
            lines.append(f"left out, because only ngspice knows them: {', '.join(unknown)}")
        sign = 1 if card.polarity == "n" else -1
        text = self.card.format(name=card.name, kind=card.polarity, sign=sign, fields=" ".join(fields))
        return [*(f"{self.language.comment} {line}" for line in lines), *self.language.fold(text)]

    def _about_the_library(self, technology: Technology, sizes: set[Size]) -> list[str]:
        """Return comments on using the foundry's library in place of the cards; none if cards come from it."""
        library, section = technology.library, technology.library.sections[technology.corner]
        renamed = sorted(
            (technology.device(polarity).name, card)
            for polarity, *size in sizes
            if (card := card_name(technology, polarity, *size)) != technology.device(polarity).name
        )
        if not renamed or not self.include:
            return []
        device, card = renamed[0]
        return [
            "Each card is one size of a device of that library, evaluated: this is what cosim has simulated.",
            f"To use the foundry's library for this simulator in its place: {self.include.format(section)}",
            "(the section may go by another name there). In the netlist its devices then replace the cards, such as",
            f"{device} for {card}.",
            "Where they are subcircuits, an instance in SPICE begins with x in place of m.",
            f"Their w and l are in units of {library.length_unit:g} m in {library.file.name}.",
        ]


def two_numbers(version: str) -> str:
    """Return the first two numbers of a BSIM4 version (4.8 of 4.8.1), as device cards of HSPICE and Spectre state it.

    The third number stands for corrections of errors only.
    """
    return ".".join(version.split(".")[:2])
