"""The tracks and stubs of one band, found one net after another; what stands in the way is taken out and tried again.

A part is what one track joins: a net, or some of its terminals where the net's trunk joins them with the others.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from cosim.mask.floorplan import RAILS, WellBand
from cosim.mask.sensitive import CLOCK, DECISION, Manners
from cosim.mask.tiles import FREE, Terminal
from cosim.technology.types import DrawingRules

_NOWHERE = 10**9  # cost of two stubs of one track that are too near each other
GRID = 40  # nm, of the search for the x of a stub
_STEPS = 200  # of such a search
_PATIENCE = 4  # so often a part is taken out before it is cut in two
_SEEN = 4  # tracks, from which a neighbour counts
_BESIDE = 60  # nm of wire for each harm that a stub does to one that is as near as this, nm
_NEAR = 1700
_OVER = 300  # nm, from the middle of a track to what it lies over
_ROUNDS = 6  # how often, for each part, another may be taken out


@dataclass(frozen=True)
class Stub:
    """A wire of metal2 at x, from the terminal at y1 to the track at y2; as long as it must be it is with `past`."""

    net: str
    x: int
    y1: int
    y2: int
    past: int

    @property
    def low(self) -> int:
        """Return the height of the stub's lower end, nm."""
        return min(self.y1, self.y2, self.past)

    @property
    def high(self) -> int:
        """Return the height of the stub's upper end, nm."""
        return max(self.y1, self.y2, self.past)


@dataclass(frozen=True, eq=False)
class TrackPart:
    """Terminals that one track joins, and what else it must reach: x of the trunk or of the strap."""

    net: str
    terminals: tuple[Terminal, ...]
    also: tuple[int, ...]

    @cached_property
    def ends(self) -> tuple[int, int]:
        """Return the interval of x that the part's metal track may reach, nm."""
        xs = [x for terminal in self.terminals for x in (terminal.box[0], terminal.box[2])]
        return min((*xs, *self.also)) - 200, max((*xs, *self.also)) + 200

    def halves(self, y: int) -> tuple["TrackPart", "TrackPart"]:
        """Cut the part into its upper and lower terminals, seen from y, or into its left and right ones."""
        upper = [one for one in self.terminals if one.box[1] > y]
        ordered = sorted(self.terminals, key=lambda one: one.box)
        first = upper if 0 < len(upper) < len(ordered) else ordered[: len(ordered) // 2]
        rest = [one for one in self.terminals if one not in first]
        return TrackPart(self.net, tuple(first), self.also), TrackPart(self.net, tuple(rest), self.also)


@dataclass(frozen=True, eq=False)
class Track:
    """A horizontal wire of metal3 in a routing channel: what it joins, its height and its stubs, nm."""

    part: TrackPart
    y: int
    stubs: tuple[Stub, ...]

    @property
    def net(self) -> str:
        """Return the net of the layout that the track is on."""
        return self.part.net

    @cached_property
    def x1(self) -> int:
        """Return the place of the track's first stub or trunk, nm."""
        return min((*(stub.x for stub in self.stubs), *self.part.also))

    @cached_property
    def x2(self) -> int:
        """Return the place of the track's last stub or trunk, nm."""
        return max((*(stub.x for stub in self.stubs), *self.part.also))


class NoTrunkError(Exception):
    """A net of the layout found no track in its channel and has no trunk that could join two of them."""


class FullError(Exception):
    """A band has no room for its wires; its first argument, once it is known, is the band's index."""


class Channel:
    """The routing channel of a band in the layout, while its tracks are chosen."""

    def __init__(self, band: WellBand, below: Sequence[Track], manners: Manners, drawing: DrawingRules) -> None:
        """Begin the routing channel of a band in the layout; below: the tracks of the band under this one."""
        self.manners, self.loud, self.below = manners, manners.clocks, below
        self.band, self.pitch = band, drawing["metal_width"] + drawing["metal_space"]
        self.space, self.room = drawing["metal_space"], drawing["via"] // 2 + 50
        self.reach = drawing["via"] // 2 + drawing["via_end"]
        self.least = drawing["metal_area"] // drawing["metal_width"] // 10 * 10 + 10 - 2 * self.reach
        edge = self.reach + drawing["metal_space"] // 2  # a stub that ends on the last track keeps from the next band
        self.heights = range(-(-(band.low + edge) // 10) * 10, band.high - edge + 1, self.pitch)
        self.tracks: dict[int, list[Track]] = defaultdict(list)
        self.columns: dict[int, list[tuple[Stub, Track]]] = defaultdict(list)  # by the micrometre
        self.narrow: dict[int, list[Terminal]] = defaultdict(list)  # by the micrometre: those with little choice
        self.ripped: Counter[TrackPart] = Counter()
        self.tired = 0  # so often all parts were tried: where there is no room, only clocks are kept apart at last
        self.quiet: list[Terminal] = []  # what clocks keep from

    def fill(self, parts: list[TrackPart]) -> list[Track]:
        """Route all tracks of the layout's band. Raises NoTrunkError, and FullError where there is no room."""
        terminals = [one for part in parts for one in part.terminals]
        self.quiet = [one for one in terminals if one.net not in (*RAILS, *self.loud)]
        for terminal in terminals:
            if terminal.box[2] - terminal.box[0] < 900:
                self.narrow[(terminal.box[0] + terminal.box[2]) // 2000].append(terminal)
        queue = deque(
            sorted(parts, key=lambda part: (self.manners.rank(part.net), part.ends[0] - part.ends[1], part.net))
        )
        rounds = 0
        while queue:
            part = queue.popleft()
            rounds += 1
            self.tired = rounds // len(parts)
            if self.tired >= _ROUNDS:
                raise FullError
            taken = self._add(part) if self.ripped[part] <= _PATIENCE or len(part.terminals) == 1 else None
            if taken is not None:
                queue.extend(taken)
            elif part.also:
                queue.extendleft(part.halves(self.band.y))
            else:
                raise NoTrunkError(part.net)
        return [found for height in sorted(self.tracks) for found in self.tracks[height]]

    def _add(self, part: TrackPart) -> list[TrackPart] | None:
        """Put a part where it costs least; returns the parts that it takes the place of, None where it cannot stand."""
        best: tuple[int, int, list[Stub], set[Track]] | None = None
        low, high = part.ends
        for y in self.heights:
            hit = {found for found in self.tracks[y] if found.part.net != part.net and self._meets(found, low, high)}
            cost = self._distance(part, y, low, high) + sum(self._weight(found) for found in hit)
            if best is not None and cost >= best[0]:
                continue
            stubs: list[Stub] = []
            for terminal in part.terminals:
                more, stub, blocking = self._stub(terminal, y, stubs)
                cost += more
                stubs.append(stub)
                hit |= blocking
            if best is None or cost < best[0]:
                best = cost, y, stubs, hit
        if best is None or best[0] >= _NOWHERE:
            return None
        _, y, stubs, hit = best
        taken = sorted(hit, key=lambda found: (found.part.net, found.y, found.part.ends))
        for found in taken:
            self._remove(found)
        self._keep(Track(part, y, tuple(stubs)))
        return [found.part for found in taken]

    def _meets(self, found: Track, low: int, high: int) -> bool:
        a, b = found.part.ends
        return a < high + self.space and low < b + self.space

    def _weight(self, found: Track) -> int:
        return 60_000 * (1 + self.ripped[found.part]) * (20 if found.part.net in self.loud else 1)

    def _distance(self, part: TrackPart, y: int, low: int, high: int) -> int:
        """Return the cost of a layout's track at y: the length of its stubs, and half of that of the neighbours beside
        it, nm."""
        away = sum(abs(y - (one.box[1] + one.box[3]) // 2) for one in part.terminals)
        sides = range(-_SEEN, _SEEN + 1)
        near = [(abs(k), found) for k in sides for found in self.tracks.get(y + k * self.pitch, ())]
        reach = y - _SEEN * self.pitch - self.pitch // 2
        near += [(max(round((y - one.y) / self.pitch), 1), one) for one in self.below if one.y >= reach]
        beside = 0
        for tracks, found in near:
            a, b = found.part.ends
            length = min(b, high) - max(a, low)
            if length > 0 < tracks and found.part.net != part.net:
                beside += length * self._harm(part.net, found.part.net, tracks)
        if part.net in self.loud:
            over = (one.box for one in self.quiet if one.box[1] - _OVER < y < one.box[3] + _OVER)
            beside += sum(max(min(x2, high) - max(x1, low), 0) for x1, _, x2, _ in over) * self._harm(part.net, "", 1)
        return away + beside // 2

    def _harm(self, net: str, other: str, tracks: int) -> int:
        """Return the cost of a micrometre beside another net, so many tracks away, over the cost of one of wire."""
        harm = self.manners.harm(net, other)
        if harm < CLOCK:
            harm >>= self.tired
        return harm // tracks if harm else int(tracks == 1 and net not in self.loud)

    def _stub(self, terminal: Terminal, to: int, own: list[Stub]) -> tuple[int, Stub, set[Track]]:
        """Return the cost of the cheapest stub from a terminal to a track, the stub, and the tracks it displaces."""
        x1, y1, x2, y2 = terminal.box
        y, net = (y1 + y2) // 2, terminal.net
        past = y if abs(y - to) >= self.least else y + (self.least if y < self.band.y else -self.least)
        low, high = min(y, to, past) - self.reach, max(y, to, past) + self.reach
        near = [
            (stub.x, found)
            for k in range(x1 // 1000 - 2, x2 // 1000 + 3)
            for stub, found in self.columns.get(k, ())
            if stub.low - self.reach < high + self.space and low - self.space < stub.high + self.reach
        ]
        middle = (x1 + x2) // 10 * 5
        steps = range(min(2 * (max((x2 - x1) // 2 - self.room, 0) // GRID) + 1, _STEPS))
        best: tuple[int, Stub, set[Track]] | None = None
        shared = [stub.x for stub in own if x1 + self.room <= stub.x <= x2 - self.room]
        harms = [(at, harm) for at, one in near if (harm := self.manners.harm(net, one.net)) >= DECISION]
        for x in (*shared, *(middle + (step + 1) // 2 * (1 if step % 2 else -1) * GRID for step in steps)):
            if any(0 < abs(stub.x - x) < self.pitch for stub in own):
                continue
            hit = {found for at, found in near if abs(at - x) < self.pitch and (found.part.net != net or at != x)}
            cost = sum(self._weight(found) for found in hit) + self._hides(x, net, low, high)
            cost += sum(_BESIDE * harm for at, harm in harms if abs(at - x) < _NEAR)
            if best is None or cost < best[0]:
                best = cost, Stub(net, x, y, to, past), hit
            if not best[0]:
                break
        if best is None:
            return _NOWHERE, Stub(net, middle, y, to, past), set()
        return best

    def _hides(self, x: int, net: str, low: int, high: int) -> int:
        """Return the cost of a stub in front of terminals that have little choice."""
        some = [one for k in range(x // 1000 - 1, x // 1000 + 2) for one in self.narrow.get(k, ())]
        return 3000 * sum(
            one.net != net
            and abs(x - (one.box[0] + one.box[2]) // 2) < self.pitch + FREE // 2
            and low - 3000 < one.box[3]
            and one.box[1] < high + 3000
            for one in some
        )

    def _keep(self, found: Track) -> None:
        self.tracks[found.y].append(found)
        for stub in found.stubs:
            self.columns[stub.x // 1000].append((stub, found))

    def _remove(self, found: Track) -> None:
        self.ripped[found.part] += 1
        self.tracks[found.y].remove(found)
        for stub in found.stubs:
            self.columns[stub.x // 1000].remove((stub, found))
