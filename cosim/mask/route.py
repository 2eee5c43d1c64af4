"""Wires: a net runs on one track of metal3 in each band, stubs of metal2 join terminals to it, metal4 joins the bands.

Tracks lie over the devices, whose gates are covered by the rail's metal. A trunk of metal4 stands where the net belongs
in the order of `net_order`, so that a track is as long as its terminals are apart and no longer.

The tracks and stubs of a band are found one net after another; what stands in the way is taken out and tried again. A
part is what one track joins: a net, or some of its terminals where the net's trunk joins them with the others.
"""

from bisect import bisect_left, insort
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from cosim.base.errors import MappingError
from cosim.circuit.elements import GROUND, Capacitor, Circuit, Mos
from cosim.mask.blocks import FREE, VDD, NetMetal
from cosim.mask.plates import Plate
from cosim.mask.rows import RAILS, WellBand
from cosim.technology.types import DrawingRules

CLOCK, DECISION, LOAD, HELD, STEADY = 96, 16, 4, 3, 1  # of a micrometre on the next track, over one of wire


@dataclass(frozen=True)
class NetClasses:
    """The classes of nets that decide which wires the router keeps apart.

    clocks: clock nets; decisions: other nets that turn switches, which swing from rail to rail; held: nets with a
    capacitor; steady: ports and supplies, which hardly move; compared: swinging comparator inputs, which stand still
    while a capacitor holds a sample; integrated: held nets that a diode charges; urgent: comparator nets that decide
    without a clock and are slowed by load.
    """

    clocks: frozenset[str] = frozenset()
    decisions: frozenset[str] = frozenset()
    held: frozenset[str] = frozenset()
    steady: frozenset[str] = frozenset()
    compared: frozenset[str] = frozenset()
    integrated: frozenset[str] = frozenset()
    urgent: frozenset[str] = frozenset()

    def harm(self, net: str, other: str) -> int:
        """Return the cost of two nets' wires side by side, relative to wire of the same length; 0 if harmless."""
        if (net in self.clocks) != (other in self.clocks):
            return CLOCK
        if net == other:
            return 0
        if net not in self.held and other not in self.held:
            if net in self.urgent or other in self.urgent:
                return LOAD
            return HELD if net in self.decisions and other in self.decisions else 0
        if net in self.decisions or other in self.decisions:
            return DECISION
        if (net in self.compared and other in self.integrated) or (other in self.compared and net in self.integrated):
            return DECISION
        if net in self.steady or other in self.steady:
            return 0 if {net, other} & {VDD, GROUND} else STEADY
        return HELD

    def rank(self, net: str) -> int:
        """Return a net's rank in the order of routing: 0 clocks, 1 nets with capacitors, 2 decisions, 3 all others."""
        kinds = (self.clocks, self.held, self.decisions)
        return next((k for k, kind in enumerate(kinds) if net in kind), len(kinds))


def manners(circuit: Circuit, ports: Iterable[str]) -> NetClasses:
    """Sort the nets of a flat circuit into the classes by which the router keeps wires apart.

    Classes follow from the roles of the devices on a net. A clock is a port that turns switches and drives nothing
    else. ports: nets with a pin.
    """
    devices = [one for one in circuit.elements if isinstance(one, Mos)]
    ends = {net for mos in devices for net in (mos.drain, mos.source)}
    switching = {mos.gate for mos in devices if mos.role == "switch"}
    clocks = (switching & set(ports)) - ends
    decisions = switching - clocks
    compared = {mos.drain for mos in devices if mos.role == "compare"}
    held = {net for one in circuit.elements if isinstance(one, Capacitor) for net in (one.a, one.b)} - {GROUND, VDD}
    return NetClasses(
        clocks=frozenset(clocks),
        decisions=frozenset(decisions),
        held=frozenset(held),
        steady=frozenset({*ports, VDD, GROUND} - clocks),
        compared=frozenset(compared - decisions),
        integrated=frozenset(held & {mos.gate for mos in devices if mos.gate == mos.drain}),
        urgent=frozenset(compared & switching),
    )


def sensitive(circuit: Circuit, ports: Iterable[str]) -> frozenset[str]:
    """Return the nets whose wires the layout protects: clocks, diodes of candidates, and nets with capacitors."""
    known = manners(circuit, ports)
    diodes = {one.gate for one in circuit.elements if isinstance(one, Mos) and one.role == "candidate"}
    return known.clocks | known.held | diodes


_NOWHERE = 10**9  # cost of two stubs of one track that are too near each other, and of a trunk beside a clock
GRID = 40  # nm, of the search for the x of a stub
_STEPS = 200  # of such a search
_PATIENCE = 4  # so often a part is taken out before it is cut in two
_TRACKS_SEEN = 4  # tracks, from which a neighbour counts
_BESIDE = 60  # nm of wire for each harm that a stub does to one that is as near as this, nm
_NEAR = 1700
_OVER = 300  # nm, from the middle of a track to what it lies over
_ROUNDS = 6  # how often, for each part, another may be taken out


@dataclass(frozen=True)
class Stub:
    """A vertical wire of metal2 at x from a terminal at height y1 to a track at height y2, nm.

    past: height to which the wire is extended so that its metal has the least area of the design rules.
    """

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
    """A set of terminals of one net that one horizontal track joins; also: x of a trunk or strap that it must reach,
    nm."""

    net: str
    terminals: tuple[NetMetal, ...]
    also: tuple[int, ...]

    @cached_property
    def ends(self) -> tuple[int, int]:
        """Return the smallest and largest x that a track of this part can reach, nm."""
        xs = [x for terminal in self.terminals for x in (terminal.box[0], terminal.box[2])]
        return min((*xs, *self.also)) - 200, max((*xs, *self.also)) + 200

    def halves(self, y: int) -> tuple["TrackPart", "TrackPart"]:
        """Split the part in two: terminals above and below height y, or, if all are on one side, left and right
        ones."""
        upper = [one for one in self.terminals if one.box[1] > y]
        ordered = sorted(self.terminals, key=lambda one: one.box)
        first = upper if 0 < len(upper) < len(ordered) else ordered[: len(ordered) // 2]
        rest = [one for one in self.terminals if one not in first]
        return TrackPart(self.net, tuple(first), self.also), TrackPart(self.net, tuple(rest), self.also)


@dataclass(frozen=True, eq=False)
class Track:
    """A horizontal wire of metal3 at height y, nm, with the part of the net that it joins and its vertical stubs."""

    part: TrackPart
    y: int
    stubs: tuple[Stub, ...]

    @property
    def net(self) -> str:
        """Return the net of the layout that the track is on."""
        return self.part.net

    @cached_property
    def x1(self) -> int:
        """Return the x of the track's leftmost stub, trunk or strap, nm."""
        return min((*(stub.x for stub in self.stubs), *self.part.also))

    @cached_property
    def x2(self) -> int:
        """Return the x of the track's rightmost stub, trunk or strap, nm."""
        return max((*(stub.x for stub in self.stubs), *self.part.also))


@dataclass(frozen=True)
class RoutingPlan:
    """The input of the router; lengths in nm.

    bands: rows of blocks, bottom to top; ports: nets with a pin at the lower edge, y = `edge`; place: net -> wanted x
    of its trunk; plates: capacitors beside the rows; straps: supply -> x of its strap; right: largest x of a trunk;
    manners: which nets are kept apart.
    """

    bands: tuple[WellBand, ...]
    ports: frozenset[str]
    place: dict[str, int]
    plates: tuple[Plate, ...]
    straps: dict[str, int]
    edge: int
    right: int
    manners: NetClasses

    @cached_property
    def reach(self) -> dict[str, list[int]]:
        """Return net -> heights that its trunk must reach besides the net's tracks, nm: of its pin and its
        capacitors' wires."""
        found = defaultdict[str, list[int]](list, {net: [self.edge] for net in self.ports})
        for plate in self.plates:
            found[plate.net].append(plate.y)
        return dict(found)


class NoTrunkError(Exception):
    """An error for a net that no single track of a band can join and that has no trunk to join several tracks."""


class FullError(Exception):
    """An error for a band without room for its wires; its argument is the band's index."""


class Channel:
    """The router of one band, which chooses the horizontal tracks and vertical stubs of the band's nets."""

    def __init__(self, plan: RoutingPlan, index: int, below: Sequence[Track], drawing: DrawingRules) -> None:
        """Begin the routing channel of a band in the layout; below: the tracks of the band under this one."""
        self.manners, self.loud, self.below = plan.manners, plan.manners.clocks, below
        self.index, self.pitch = index, drawing["metal_width"] + drawing["metal_space"]
        self.band = band = plan.bands[index]
        self.space, self.room = drawing["metal_space"], drawing["via"] // 2 + 50
        self.reach = drawing["via"] // 2 + drawing["via_end"]
        self.least = drawing["metal_area"] // drawing["metal_width"] // 10 * 10 + 10 - 2 * self.reach
        edge = self.reach + drawing["metal_space"] // 2  # a stub that ends on the last track keeps from the next band
        self.heights = range(-(-(band.low + edge) // 10) * 10, band.high - edge + 1, self.pitch)
        self.tracks: dict[int, list[Track]] = defaultdict(list)
        self.columns: dict[int, list[tuple[Stub, Track]]] = defaultdict(list)  # by the micrometre
        self.narrow: dict[int, list[NetMetal]] = defaultdict(list)  # by the micrometre: those with little choice
        self.ripped: Counter[TrackPart] = Counter()
        self.tired = 0  # so often all parts were tried: where there is no room, only clocks are kept apart at last
        self.quiet: list[NetMetal] = []  # what clocks keep from

    def fill(self, parts: list[TrackPart]) -> list[Track]:
        """Route all parts in the band and return the tracks, lowest first.

        Raises NoTrunkError for a part that cannot be joined or divided, FullError if the band has no room.
        """
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
                raise FullError(self.index)
            taken = self._add(part) if self.ripped[part] <= _PATIENCE or len(part.terminals) == 1 else None
            if taken is not None:
                queue.extend(taken)
            elif part.also:
                queue.extendleft(part.halves(self.band.y))
            else:
                raise NoTrunkError(part.net)
        return [found for height in sorted(self.tracks) for found in self.tracks[height]]

    def _add(self, part: TrackPart) -> list[TrackPart] | None:
        """Place a part's track where it costs least, and return the parts that it displaces; None if it fits
        nowhere."""
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
        """Return the cost of a part's track at height y, nm: the length of its stubs plus half the cost of neighbouring
        wires.

        low, high: ends of the track, nm.
        """
        away = sum(abs(y - (one.box[1] + one.box[3]) // 2) for one in part.terminals)
        sides = range(-_TRACKS_SEEN, _TRACKS_SEEN + 1)
        near = [(abs(k), found) for k in sides for found in self.tracks.get(y + k * self.pitch, ())]
        reach = y - _TRACKS_SEEN * self.pitch - self.pitch // 2
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
        """Return the cost of wire of `net` in parallel to `other`, `tracks` tracks away, relative to wire of the
        same length."""
        harm = self.manners.harm(net, other)
        if harm < CLOCK:
            harm >>= self.tired
        return harm // tracks if harm else int(tracks == 1 and net not in self.loud)

    def _stub(self, terminal: NetMetal, to: int, own: list[Stub]) -> tuple[int, Stub, set[Track]]:
        """Return the cheapest stub from a terminal to the track at height `to`: its cost, the stub, the tracks it
        displaces.

        own: stubs that the track has already.
        """
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
        """Return the cost of a stub at x that blocks narrow terminals of other nets, nm; low, high: ends of the
        stub, nm."""
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


_FROM_CLOCKS = 3360  # nm, between the trunk of a clock and others
_TRUNKS_SEEN = 2300  # nm, from which two trunks do not see each other
_SHARE = 96  # half of this: what a micrometre of distance costs over one beside a wire that stands as near as can be


class NoRoomError(MappingError):
    """An error for rows that are too short: a vertical wire (trunk) across them finds no free place."""


@dataclass(frozen=True)
class Trunk:
    """A vertical wire of metal4 at x, from y1 to y2, nm."""

    net: str
    x: int
    y1: int
    y2: int


@dataclass
class RoutingLanes:
    """Wires on parallel lanes; held: lane position -> occupied stretches (from, to, net), nm, in order."""

    clear: int  # nm between a stretch and the next one on its lane
    held: dict[int, list[tuple[int, int, str]]] = field(default_factory=lambda: defaultdict(list))

    def free(self, lane: int, low: int, high: int, net: str) -> bool:
        """Tell whether a lane has room from `low` to `high`, nm, for a wire of `net`, with the space to wires of
        other nets."""
        found = self.held.get(lane, [])
        at = bisect_left(found, (low, low, ""))
        near = found[max(at - 1, 0) : at + 1]
        while at < len(found) and found[at][0] < high + self.clear:
            near.append(found[at])
            at += 1
        return not any(a < high + self.clear and low < b + self.clear and other != net for a, b, other in near)

    def near(self, lane: int, reach: int, pitch: int) -> Iterator[tuple[int, list[tuple[int, int, str]]]]:
        """Yield each occupied lane nearer than `reach`, nm, nearest first, with its stretches; pitch: between lanes,
        nm."""
        for away in range(pitch, reach, pitch):
            for other in (lane - away, lane + away):
                if other in self.held:
                    yield other, self.held[other]

    def take(self, lane: int, low: int, high: int, net: str) -> None:
        """Occupy a lane from `low` to `high`, nm, with a wire of `net`."""
        insort(self.held[lane], (low, high, net))


@dataclass(frozen=True)
class Wires:
    """The metal wires of a drawn chip: vertical trunks of metal4, and horizontal tracks of metal3 with their stubs."""

    trunks: tuple[Trunk, ...]
    tracks: tuple[Track, ...]

    @property
    def stubs(self) -> list[Stub]:
        """Return the stubs of all tracks of the layout."""
        return [stub for track in self.tracks for stub in track.stubs]


def route(plan: RoutingPlan, drawing: DrawingRules) -> Wires:
    """Route all wires of a layout.

    Raises FullError with the index of a band that must be higher, NoRoomError for a trunk without a free place.
    """
    ends = [defaultdict[str, list[NetMetal]](list) for _ in plan.bands]
    for k, band in enumerate(plan.bands):
        for terminal in band.terminals():
            ends[k][terminal.net].append(terminal)
    done: dict[int, list[Track]] = {}
    joined: set[str] = set()
    trunks: dict[str, Trunk] = {}
    while len(done) < len(plan.bands):
        trunks = _trunks(plan, ends, joined, drawing)
        try:
            for k in range(len(plan.bands)):
                also = {net: (plan.straps[net],) if net in RAILS else () for net in ends[k]}
                also |= {net: (trunks[net].x,) for net in ends[k] if net in trunks}
                parts = [TrackPart(net, tuple(terminals), also[net]) for net, terminals in ends[k].items()]
                done[k] = Channel(plan, k, done.get(k - 1, ()), drawing).fill(parts)
        except NoTrunkError as error:
            joined.add(str(error))
            done = {}
    tracks = [track for found in done.values() for track in found]
    return Wires(_cut(trunks, tracks, plan), tuple(tracks))


def _cut(trunks: dict[str, Trunk], tracks: list[Track], plan: RoutingPlan) -> tuple[Trunk, ...]:
    """Return the trunks, each shortened to the tracks, pins and capacitor wires of its net."""
    ys: dict[str, list[int]] = defaultdict(list)
    for track in tracks:
        ys[track.net].append(track.y)
    found: list[Trunk] = []
    for net, trunk in trunks.items():
        at = ys[net] + plan.reach.get(net, [])
        found.append(Trunk(net, trunk.x, min(at), max(at)))
    return tuple(found)


def _trunks(
    plan: RoutingPlan, ends: list[defaultdict[str, list[NetMetal]]], joined: set[str], drawing: DrawingRules
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
        ys = at[net] + plan.reach.get(net, [])
        if len(ys) == 2 and net not in joined:
            continue
        tracks = len(at[net]) // 2 if net in plan.manners.urgent else 1
        trunk = found[net] = _place_trunk(plan, lanes, Trunk(net, plan.place[net], min(ys), max(ys)), tracks, pitch)
        lanes.take(trunk.x, trunk.y1, trunk.y2, net)
    return found


def _place_trunk(plan: RoutingPlan, lanes: RoutingLanes, wanted: Trunk, tracks: int, pitch: int) -> Trunk:
    """Return the trunk `wanted`, moved to the free x at which its distance and the harm to neighbours cost least.

    tracks: how many tracks grow longer if the trunk moves aside. Raises NoRoomError if no lane is free.
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
    """Return the cost of a trunk beside wires of other nets, in nm of wire; prohibitive if only one of two is a
    clock."""
    cost = 0
    for lane, stretches in lanes.near(trunk.x, _FROM_CLOCKS, pitch):
        for a, b, other in stretches:
            length = min(trunk.y2, b) - max(trunk.y1, a)
            if length <= 0 or other == trunk.net:
                continue
            harm = plan.manners.harm(trunk.net, other)
            if harm == CLOCK:
                return _NOWHERE
            if abs(lane - trunk.x) < _TRUNKS_SEEN:
                cost += (2 * harm or 1) * length * pitch // abs(lane - trunk.x) // _SHARE
    return cost
