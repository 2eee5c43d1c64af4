"""Wires: a net runs on one track of metal3 in each band, stubs of metal2 join terminals to it, metal4 joins the bands.

Tracks lie over the devices, whose gates are covered by the rail's metal. A trunk of metal4 stands where the net belongs
in the order of `net_order`, so that a track is as long as its terminals are apart and no longer.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from cosim.base.errors import MappingError
from cosim.mask.channel import Channel, FullError, NoTrunkError, Stub, Track, TrackPart
from cosim.mask.floorplan import RAILS, WellBand
from cosim.mask.sensitive import CLOCK, Manners
from cosim.mask.tiles import Terminal
from cosim.technology.types import DrawingRules

_NOWHERE = 10**9  # cost of a place that a trunk must not take
_FROM_CLOCKS = 3360  # nm, between the trunk of a clock and others
_SEEN = 2300  # nm, from which two trunks do not see each other
_SHARE = 96  # half of this: what a micrometre of distance costs over one beside a wire that stands as near as can be


class NoRoomError(MappingError):
    """Rows are too short: beside the wires that run up across them there is no place for one more."""


@dataclass(frozen=True)
class Trunk:
    """A vertical wire of metal4 at x, from y1 to y2, nm."""

    net: str
    x: int
    y1: int
    y2: int


@dataclass
class RoutingLanes:
    """Wires on parallel lanes: position -> the stretches there and the net of each."""

    clear: int  # nm between a stretch and the next one on its lane
    held: dict[int, list[tuple[int, int, str]]] = field(default_factory=lambda: defaultdict(list))

    def free(self, lane: int, low: int, high: int, net: str) -> bool:
        """Tell whether no wire of another net lies on this stretch of a lane, or too near to it."""
        found = self.held.get(lane, [])
        at = bisect_left(found, (low, low, ""))
        near = found[max(at - 1, 0) : at + 1]
        while at < len(found) and found[at][0] < high + self.clear:
            near.append(found[at])
            at += 1
        return not any(a < high + self.clear and low < b + self.clear and other != net for a, b, other in near)

    def near(self, lane: int, reach: int, pitch: int) -> Iterator[tuple[int, list[tuple[int, int, str]]]]:
        """Yield the other lanes nearer than `reach`, nearest first, with the stretches on each."""
        for away in range(pitch, reach, pitch):
            for other in (lane - away, lane + away):
                if other in self.held:
                    yield other, self.held[other]

    def take(self, lane: int, low: int, high: int, net: str) -> None:
        """Put a wire of a net on this stretch of a lane."""
        insort(self.held[lane], (low, high, net))


@dataclass(frozen=True)
class Wires:
    """All metal wires of a drawn chip."""

    trunks: tuple[Trunk, ...]
    tracks: tuple[Track, ...]

    @property
    def stubs(self) -> list[Stub]:
        """Return the stubs of all tracks of the layout."""
        return [stub for track in self.tracks for stub in track.stubs]


@dataclass(frozen=True)
class RoutingPlan:
    """Plan of the wiring: bands, pins on the lower edge at y = edge, a net's place (nm), and what else it must reach.

    reach: net -> heights at which its trunk is met from above; straps: rail -> x of its strap;
    manners: which nets are kept from which.
    """

    bands: tuple[WellBand, ...]
    ports: frozenset[str]
    place: dict[str, int]
    reach: dict[str, list[int]]
    straps: dict[str, int]
    edge: int
    right: int
    manners: Manners


def terminals_of(band: WellBand) -> Iterable[Terminal]:
    """Yield the terminals of a band at their places on the chip, nm."""
    for k, row in enumerate(band.rows):
        for tile in row.tiles:
            for terminal in tile.terminals:
                x1, y1, x2, y2 = terminal.box
                low, high = flipped(y1, y2, band.y, k)
                yield Terminal(terminal.net, (x1, low, x2, high))


def flipped(y1: int, y2: int, y: int, k: int) -> tuple[int, int]:
    """Return the heights of a row's shape on the chip, nm: row 0 rises from its tap, row 1 hangs below it."""
    return (y + y1, y + y2) if k == 0 else (y - y2, y - y1)


def route(plan: RoutingPlan, drawing: DrawingRules) -> Wires:
    """Route all wires of a layout's plan.

    Raises FullError with the index of a band that must be higher, NoRoomError for a trunk without a place.
    """
    ends = [defaultdict[str, list[Terminal]](list) for _ in plan.bands]
    for k, band in enumerate(plan.bands):
        for terminal in terminals_of(band):
            ends[k][terminal.net].append(terminal)
    done: dict[int, list[Track]] = {}
    joined: set[str] = set()
    trunks: dict[str, Trunk] = {}
    while len(done) < len(plan.bands):
        trunks = _trunks(plan, ends, joined, drawing)
        try:
            for k, band in enumerate(plan.bands):
                also = {net: (plan.straps[net],) if net in RAILS else () for net in ends[k]}
                also |= {net: (trunks[net].x,) for net in ends[k] if net in trunks}
                parts = [TrackPart(net, tuple(terminals), also[net]) for net, terminals in ends[k].items()]
                try:
                    done[k] = Channel(band, done.get(k - 1, ()), plan.manners, drawing).fill(parts)
                except FullError:
                    raise FullError(k) from None
        except NoTrunkError as error:
            joined.add(str(error))
            done = {}
    tracks = [track for found in done.values() for track in found]
    return Wires(_cut(trunks, tracks, plan), tuple(tracks))


def _cut(trunks: dict[str, Trunk], tracks: list[Track], plan: RoutingPlan) -> tuple[Trunk, ...]:
    """Return the trunks of a layout's wires, each only as long as it must be."""
    ys: dict[str, list[int]] = defaultdict(list)
    for track in tracks:
        ys[track.net].append(track.y)
    found: list[Trunk] = []
    for net, trunk in trunks.items():
        at = ys[net] + plan.reach.get(net, []) + ([plan.edge] if net in plan.ports else [])
        found.append(Trunk(net, trunk.x, min(at), max(at)))
    return tuple(found)


def _trunks(
    plan: RoutingPlan, ends: list[defaultdict[str, list[Terminal]]], joined: set[str], drawing: DrawingRules
) -> dict[str, Trunk]:
    at: dict[str, list[int]] = defaultdict(list)
    for k, band in enumerate(plan.bands):
        for net in ends[k]:
            if net not in RAILS:
                at[net] += [band.low, band.high]
    lanes = RoutingLanes(drawing["metal_space"] + 400)
    found: dict[str, Trunk] = {}
    pitch = drawing["metal_width"] + drawing["metal_space"]
    for net in sorted(at, key=lambda net: (plan.manners.rank(net), plan.place[net], net)):
        ys = at[net] + plan.reach.get(net, []) + ([plan.edge] if net in plan.ports else [])
        if len(ys) == 2 and net not in joined:
            continue
        tracks = len(at[net]) // 2 if net in plan.manners.urgent else 1
        trunk = found[net] = _place_trunk(plan, lanes, Trunk(net, plan.place[net], min(ys), max(ys)), tracks, pitch)
        lanes.take(trunk.x, trunk.y1, trunk.y2, net)
    return found


def _place_trunk(plan: RoutingPlan, lanes: RoutingLanes, wanted: Trunk, tracks: int, pitch: int) -> Trunk:
    """Return a trunk where it does the least harm and is nearest to the place where it is wanted.

    tracks: how many tracks a micrometre aside makes longer, as far as counts.
    """
    net, low, high = wanted.net, wanted.y1, wanted.y2
    first, best = wanted.x // pitch, (_NOWHERE, 0)
    for step in range(2 * plan.right // pitch + 3):
        aside = (step + 1) // 2 * pitch
        away = aside * tracks
        if away >= best[0]:
            break
        x = first * pitch + (aside if step % 2 else -aside)
        if 0 <= x <= plan.right and lanes.free(x, low, high, net):
            best = min(best, (away + _harm(plan, lanes, replace(wanted, x=x), pitch), x))
    if best[0] >= _NOWHERE:
        raise NoRoomError(f"net {net}: there is no room for its wire from y = {low / 1e3:g} to {high / 1e3:g} um")
    return replace(wanted, x=best[1])


def _harm(plan: RoutingPlan, lanes: RoutingLanes, trunk: Trunk, pitch: int) -> int:
    """Return the cost of a trunk for the nets beside it, nm of wire; prohibitive next to a clock."""
    cost = 0
    for lane, stretches in lanes.near(trunk.x, _FROM_CLOCKS, pitch):
        for a, b, other in stretches:
            length = min(trunk.y2, b) - max(trunk.y1, a)
            if length <= 0 or other == trunk.net:
                continue
            harm = plan.manners.harm(trunk.net, other)
            if harm == CLOCK:
                return _NOWHERE
            if abs(lane - trunk.x) < _SEEN:
                cost += (2 * harm or 1) * length * pitch // abs(lane - trunk.x) // _SHARE
    return cost
