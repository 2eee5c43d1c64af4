"""The model cards that a deck needs: one per transistor type and size, from the technology's library and corner."""

from collections.abc import Iterable
from functools import cache

from cosim.technology.foundry import Section, is_sized, model_card, read_section
from cosim.technology.types import Polarity, Technology

_DEFAULT_TOXE = 3e-9  # m; BSIM4's
Size = tuple[Polarity, float, float]  # polarity, w and l in metre


def card_name(technology: Technology, polarity: Polarity, w: float, l: float) -> str:  # noqa: E741
    """What an instance of this size calls its model: the library's own name where one card fits all sizes."""
    device = technology.device(polarity).name
    if not _sized(_section(technology), device):
        return device
    size = "_".join(f"{letter}{value * 1e6:.6g}" for letter, value in (("w", w), ("l", l)))
    return f"{device}_{size}".replace(".", "p")


def device_cards(technology: Technology, sizes: Iterable[Size]) -> str:
    """The cards of these sizes, in order of name, under a comment that says where they come from.

    Raises InputError when the library does not have a device or a size.
    """
    section, library = _section(technology), technology.library
    cards = {
        (name := card_name(technology, polarity, w, length)): _card(
            section, technology.device(polarity).name, polarity, w, length, library.length_unit, name
        )
        for polarity, w, length in sizes
    }
    source = f"* devices of {technology.name}, from {library.file.name}, section {section.name}; its licence applies"
    return "\n".join([source, *(cards[name] for name in sorted(cards))]) + "\n"


def card_numbers(technology: Technology, sizes: Iterable[Size]) -> dict[str, dict[str, float | str]]:
    """Card -> what it holds, by parameter: numbers, but for its type and version."""
    cards = device_cards(technology, sizes).split(".model ")[1:]
    found: dict[str, dict[str, float | str]] = {}
    for name, kind, *words in (card.replace("\n+", " ").split() for card in cards):
        texts = dict(word.split("=", 1) for word in words)
        found[name] = {"type": kind, **{key: text if key == "version" else float(text) for key, text in texts.items()}}
    return found


def oxide_thickness(technology: Technology, polarity: Polarity) -> float:
    """Electrical thickness of the gate oxide of the unit mirror's device, m: TOXE of its BSIM4 card."""
    drawn = {"n": technology.sizing.mirror_n, "p": technology.sizing.mirror_p}[polarity]
    (card,) = card_numbers(technology, [(polarity, drawn.w, drawn.l)]).values()
    return float(card.get("toxe", _DEFAULT_TOXE))


def _section(technology: Technology) -> Section:
    library = technology.library
    return read_section(library.file, library.sections[technology.corner], library.also)


_card = cache(model_card)  # the same few sizes for every deck of a worker


@cache
def _sized(section: Section, device: str) -> bool:
    return is_sized(section, device)
