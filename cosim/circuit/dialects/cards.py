"""Device cards for simulators other than ngspice: what `device_cards` writes, in another form."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cosim.circuit.deck import fold
from cosim.technology.devices import Size, card_name, device_cards
from cosim.technology.types import Technology

SPICE_CARD = ".model {name} {kind}mos level=54 {fields}"

# Of BSIM4 in ngspice, but not of Berkeley's: limits of the operating range that it warns about.
_NGSPICE_ONLY = re.compile(r"v(gs|gd|gb|ds|bs|bd)r?_max")


@dataclass(frozen=True)
class CardForm:
    """How a dialect writes a card: `{name}`, `{kind}` n or p, `{sign}` 1 or -1, `{fields}` the parameters.

    opening: statements in front of the first; version: what it makes of BSIM4's, and how it writes that;
    defaults: where a parameter that a card leaves out differs from ngspice's own;
    include: a foundry's library, `{}` its section; empty where no kit has one for the simulator.
    """

    comment: str
    card: str
    version: Callable[[str], str]
    written: str = "version={}"
    opening: tuple[str, ...] = ()
    defaults: tuple[tuple[str, str], ...] = ()
    fold: Callable[[str], list[str]] = fold
    include: str = ".lib 'FILE' {}"

    def format_devices(self, technology: Technology, sizes: Iterable[Size]) -> str:
        """The cards of these sizes, and how to use the foundry's own library."""
        sizes = set(sizes)
        head, *cards = device_cards(technology, sizes).split(".model ")
        lines = [f"{self.comment} {line.removeprefix('*').strip()}" for line in head.splitlines()]
        lines += self.opening
        lines += [f"{self.comment} {line}" for line in self._about_the_library(technology, sizes)]
        for card in cards:
            lines += self._format_card(card)
        return "\n".join(lines) + "\n"

    def _format_card(self, card: str) -> list[str]:
        """One card as lines, behind comments on what is not ngspice's."""
        name, kind, *words = card.replace("\n+", " ").split()
        parameters = dict(word.split("=", 1) for word in words)
        version, _ = parameters.pop("version", ""), parameters.pop("level", "")
        parameters = {**parameters, **{key: value for key, value in self.defaults if key not in parameters}}
        unknown = [key for key in parameters if _NGSPICE_ONLY.fullmatch(key)]
        fields = [f"{key}={value}" for key, value in parameters.items() if key not in unknown]
        lines: list[str] = []
        if version:
            taken = self.version(version)
            fields.insert(0, self.written.format(taken))
            lines += [f"{self.comment} BSIM4 {version}, here version={taken}"] if taken != version else []
        if unknown:
            lines.append(f"{self.comment} left out, because only ngspice knows them: {', '.join(unknown)}")
        sign = 1 if kind[0] == "n" else -1
        return lines + self.fold(self.card.format(name=name, kind=kind[0], sign=sign, fields=" ".join(fields)))

    def _about_the_library(self, technology: Technology, sizes: set[Size]) -> list[str]:
        """How to take the foundry's library in place of the cards; empty where a card is the library's own."""
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
    """4.8.1 -> 4.8: what both HSPICE and Spectre take; the third number only corrects errors."""
    return ".".join(version.split(".")[:2])
