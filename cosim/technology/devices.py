"""The model cards that a deck needs: one per transistor type and size, from the technology's library and corner."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from cosim.technology.foundry import DrawnTransistor, LibrarySection, ModelCard, is_sized, model_card, read_section
from cosim.technology.types import Polarity, Technology

_DEFAULT_TOXE = 3e-9  # m; BSIM4's
Size = tuple[Polarity, float, float]  # polarity, w and l in metre


def card_name(technology: Technology, polarity: Polarity, w: float, l: float) -> str:  # noqa: E741
    """Return the name of the model card that describes a process's device of this size.

    It is the library's own where one card fits all sizes.
    """
    device = technology.device(polarity).name
    if not _sized(_section(technology), device):
        return device
    size = "_".join(f"{letter}{value * 1e6:.6g}" for letter, value in (("w", w), ("l", l)))
    return f"{device}_{size}".replace(".", "p")


@dataclass(frozen=True)
class DeviceCards:
    """The cards that a circuit needs, in order of name; source: where they come from, for a comment."""

    source: str
    cards: tuple[ModelCard, ...]


def device_cards(technology: Technology, sizes: Iterable[Size]) -> DeviceCards:
    """Return the cards of these sizes. Raises InputError when the library does not have a device or a size."""
    section, library = _section(technology), technology.library
    cards = {
        (name := card_name(technology, *size)): _card(
            section, technology.device(size[0]).name, DrawnTransistor(*size, library.length_unit), name
        )
        for size in sizes
    }
    source = f"devices of {technology.name}, from {library.file.name}, section {section.name}; its licence applies"
    return DeviceCards(source, tuple(cards[name] for name in sorted(cards)))


def oxide_thickness(technology: Technology, polarity: Polarity) -> float:
    """Return the electrical thickness of the gate oxide of the unit mirror's device, m: TOXE of its BSIM4 card."""
    drawn = {"n": technology.sizing.mirror_n, "p": technology.sizing.mirror_p}[polarity]
    (card,) = device_cards(technology, [(polarity, drawn.w, drawn.l)]).cards
    return card.parameters.get("toxe", _DEFAULT_TOXE)


def _section(technology: Technology) -> LibrarySection:
    library = technology.library
    given = library.flicker_worst if technology.flicker == "worst" else ""
    return read_section(library.file, library.sections[technology.corner], library.also, given)


_card = cache(model_card)  # the same few sizes for every deck of a worker


@cache
def _sized(section: LibrarySection, device: str) -> bool:
    return is_sized(section, device)
