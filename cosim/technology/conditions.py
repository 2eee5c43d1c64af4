"""A technology in another corner, at another temperature or supply, or with other flicker noise; sizes stay drawn."""

from dataclasses import dataclass, replace

from cosim.base.bounds import CELSIUS, SUPPLY_SHARE, bounded
from cosim.base.errors import InputError
from cosim.technology.calibration import Calibration
from cosim.technology.types import Flicker, Technology

GRID_CELSIUS = (0.0, 27.0, 60.0)  # of a grid of conditions, unless someone asks for others
GRID_SUPPLIES = (0.95, 1.0, 1.05)  # of the nominal one


@dataclass(frozen=True)
class ConditionGrid:
    """A grid of conditions for a circuit: every combination of corner, temperature and supply.

    corners: empty for all that the technology has; celsius: temperatures; supplies: over the nominal supply.
    """

    corners: tuple[str, ...] = ()
    celsius: tuple[float, ...] = bounded(GRID_CELSIUS, CELSIUS)
    supplies: tuple[float, ...] = bounded(GRID_SUPPLIES, SUPPLY_SHARE)


def at(
    technology: Technology, corner: str | None = None, celsius: float | None = None, supply: float | None = None
) -> Technology:
    """Return the technology in another corner, at another temperature or supply (V); None keeps a condition.

    corner: our name of it (tt) or the library's own. Raises InputError for a corner that the technology lacks, and for
    a supply or temperature that its devices are not made for.
    """
    celsius = technology.celsius if celsius is None else celsius
    supply = technology.supply if supply is None else supply
    if not 0 < supply <= technology.supply_max:
        raise InputError(
            f"supply must be above 0 V and at most {technology.supply_max:g} V, the largest of {technology.name}, "
            f"not {supply:g} V; choose another with --supply"
        )
    if celsius not in CELSIUS:
        raise InputError(
            f"temperature must lie in {CELSIUS}, the range of device models, not "
            f"{celsius:g} C; choose another with --temp"
        )
    found = technology.corner if corner is None else _find_corner(technology, corner)
    return replace(technology, corner=found, celsius=celsius, supply=supply)


def with_flicker(technology: Technology, flicker: Flicker) -> Technology:
    """Return the technology with typical or worst-case flicker noise. Raises InputError if it has no worst case."""
    if flicker == "worst" and not technology.library.flicker_worst:
        raise InputError(
            f"{technology.name} knows no worst case of flicker noise; leave it typical, or name the library's "
            "parameter as library.flicker_worst in the technology's file"
        )
    return replace(technology, flicker=flicker)


def nominal(technology: Technology, calibration: Calibration) -> Technology:
    """Return the technology in the conditions of its calibration, for which networks are compiled."""
    return replace(technology, corner="tt", celsius=calibration.celsius, supply=calibration.supply)


def _find_corner(technology: Technology, corner: str) -> str:
    sections = technology.library.sections
    names = {section.lower(): ours for ours, section in sections.items()} | {ours: ours for ours in sections}
    if corner.lower() in names:
        return names[corner.lower()]
    known = ", ".join(ours if ours == section else f"{ours} ({section})" for ours, section in sections.items())
    raise InputError(f"corner must be one of {known} for {technology.name}, not {corner!r}")


def format_conditions(technology: Technology) -> str:
    """Format a technology's corner, temperature and supply in words."""
    return f"{technology.corner}, {technology.celsius:g} C, {technology.supply:g} V"
