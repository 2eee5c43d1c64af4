"""The language of a simulator: its netlists, device cards and testbenches, and the names in its results."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace

from cosim.base.errors import InputError
from cosim.circuit.bench import Bench, Current, DrainCurrent, Probe, Tolerances, Voltage
from cosim.circuit.deck import Language, fold, format_circuit, format_number
from cosim.circuit.elements import Circuit
from cosim.technology.foundry import ModelCard, Size, card_name, cards_source, device_cards
from cosim.technology.models.family import CardForm, ModelFamily
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

    language: syntax of its netlists; testbench: function that returns the lines of an input file which includes
    `files`; printed: function that returns, for models of a family, the name of a probe in the simulator's results;
    library: function that returns the statements by which an input file takes the foundry's own library, None where
    cosim writes none for the simulator.
    """

    name: str
    language: Language
    testbench: Callable[[Bench], list[str]]
    printed: Callable[[Probe, ModelFamily], str]
    files: FileNames = FileNames()
    library: Callable[[Technology], list[str]] | None = None

    def devices(self, technology: Technology, sizes: Iterable[Size]) -> str:
        """Format the device cards of these sizes, or the statements that take the foundry's own library.

        Raises InputError if the technology's library lacks a device or a size, or if its models cannot be written in
        the dialect.
        """
        sizes = set(sizes)
        cards = device_cards(technology, sizes)
        comment = f"{self.language.comment} {cards_source(technology)}"
        if self.language.foundry and self.library is not None:
            return "\n".join([comment, *self.library(technology)]) + "\n"
        forms = {card.family.name: card_form(card.family, self.name) for card in cards}
        lines = [comment, *dict.fromkeys(line for form in forms.values() for line in form.opening)]
        for form in forms.values():
            lines += [f"{self.language.comment} {line}" for line in _about_library(technology, sizes, form)]
        for card in cards:
            lines += _format_card(card, forms[card.family.name], self)
        return "\n".join(lines) + "\n"

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
    if dialect.library is None:
        raise InputError(f"--models foundry is for ngspice and spectre, not for {dialect.name}; leave it out")
    return replace(dialect, language=replace(dialect.language, foundry=True))


def tolerance_texts(tolerances: Tolerances) -> dict[str, str]:
    """Return a bench's tolerances, name -> value as text for a netlist."""
    return {name: format_number(value) for name, value in asdict(tolerances).items()}


def spice_probe(probe: Voltage | Current) -> str:
    """Return a probe as SPICE decks write it: v(net) or i(source)."""
    return f"v({probe.net})" if isinstance(probe, Voltage) else f"i(v{probe.source})"


def transistor_name(probe: DrainCurrent, letter: str = "m") -> str:
    """Return the name in netlists of a probe's transistor: `xnetwork.xcell.m4` for `network.cell.4`; letter: `m`."""
    *path, name = probe.device.split(".")
    return ".".join((*(f"x{instance}" for instance in path), f"{letter}{name}"))


def card_form(family: ModelFamily, dialect: str) -> CardForm:
    """Return the form of a family's cards in a dialect, by its name. Raises InputError where cosim knows none."""
    if dialect not in family.forms:
        raise InputError(
            f"models of {family.name} can be written for {' and '.join(family.forms)}, not for {dialect}; choose one "
            "of them with --dialect"
        )
    return family.forms[dialect]


def _format_card(card: ModelCard, form: CardForm, dialect: Dialect) -> list[str]:
    """Format one device card as lines, after comments on the parameters that the dialect's simulator does not know."""
    known = {key: value for key, value in card.parameters.items() if key != "level"}
    unknown = [key for key in known if form.unknown.fullmatch(key)]
    numbers = {**known, **{key: value for key, value in form.defaults if key not in known}}
    numbers |= {key: value for key, value in form.replaced if key in known}
    fields = [f"{key}={value:.12g}" for key, value in numbers.items() if key not in unknown]
    lines: list[str] = []
    if card.version:
        taken = form.version(card.version)
        fields.insert(0, form.written.format(taken))
        lines += [f"{card.family.name} {card.version}, here version={taken}"] if taken != card.version else []
    if unknown:
        lines.append(f"left out, because {dialect.name} does not know them: {', '.join(unknown)}")
    sign = 1 if card.polarity == "n" else -1
    text = form.card.format(name=card.name, polarity=card.polarity, sign=sign, fields=" ".join(fields))
    comments = (line.removeprefix("+ ") for text in lines for line in fold(text))
    return [*(f"{dialect.language.comment} {line}" for line in comments), *dialect.language.fold(text)]


def _about_library(technology: Technology, sizes: set[Size], form: CardForm) -> list[str]:
    """Return comments on using the foundry's library in place of the cards; none if cards come from it."""
    library, section = technology.library, technology.library.sections[technology.corner]
    renamed = sorted(
        (technology.device(polarity).name, card)
        for polarity, *size in sizes
        if (card := card_name(technology, polarity, *size)) != technology.device(polarity).name
    )
    if not renamed or not form.include:
        return []
    device, card = renamed[0]
    return [
        "Each card is one size of a device of that library, evaluated: this is what cosim has simulated.",
        f"To use the foundry's library for this simulator in its place: {form.include.format(section)}",
        "(the section may go by another name there). In the netlist its devices then replace the cards, such as",
        f"{device} for {card}.",
        "Where they are subcircuits, an instance in SPICE begins with x in place of m.",
        f"Their w and l are in units of {library.length_unit:g} m in {library.file.name}.",
    ]
