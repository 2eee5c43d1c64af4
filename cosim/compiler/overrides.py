"""Overrides: changes of a designer to single transistors and bias currents of a compiled circuit.

    [[transistors]]
    mirror = "bias_thresh_#"            # all transistors on these gate lines; # stands for a number
    times = 2                           # as many in parallel: the same ratio, half the variance of mismatch

    [[transistors]]
    name = "network.row_layer1_0.w2"    # as cosim sensitivity writes it
    w = "2u"
    l = "10u"
    m = 3

    [[transistors]]
    name = "network.cell_layer1_*"      # * stands for anything, ? for one letter
    role = "level"                      # of these, those that do this in their cell
    l = "6u"

    [[bias]]
    pin = "bias_thresh_0"
    factor = 1.1                        # or current = "1.2n"

Entries apply in their order. The rest of the compilation stays as it is, so the mapping report, and thresholds that
waveforms and pictures show, are those of the circuit as compiled. Simulators, mismatch, areas, layout and the states of
the behavioral model are those of the changed circuit. In weak inversion a transistor's current grows with m W / L,
which is what the behavioral model takes (E. Vittoz and J. Fellrath, IEEE J. Solid-State Circuits 12 (1977) 224). A
simulator knows more: threshold voltages depend on W and L, by 15 mV from 5u/5u to 7u/7u in generic180. Only a mirror
that is changed whole, by `times`, keeps its ratio exactly.
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

from cosim.base.bounds import Bounds
from cosim.base.errors import InputError, MappingError
from cosim.base.quantities import parse_quantity
from cosim.base.text import check_known, read_toml, shown, shown_name, shown_path, typed
from cosim.cells.assembly import Assembly
from cosim.circuit.elements import Circuit, Element, Instance, Mos, Role, Subcircuit
from cosim.circuit.spice import PARALLEL, SIDE
from cosim.technology.types import Technology
from cosim.units.builder import NETWORK, instance

CURRENT = Bounds(1e-13, 1e-6, "A")
FACTOR = Bounds(0.01, 100)
_REPAIR = (
    "write entries [[transistors]] with name, role or mirror and w, l, m or times, and entries [[bias]] with pin and "
    "current or factor"
)
_QUANTITIES = {"w": "m", "l": "m", "current": "A"}
_GRID = 1e-6  # of rounded floats, in steps of the layout grid
_LONGEST = 200  # characters of a pattern
_UPPER = ".upper"  # ends the matched group of the upper devices of self-cascodes

Size = tuple[float, float, int]  # W and L, metre, and devices in parallel
Changes = Mapping[str, Size]  # path of a transistor -> its new size
_Key = tuple[tuple[str, Size], ...]
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class TransistorOverride:
    """New sizes for transistors of a circuit.

    name: a pattern (see `matches`) of their hierarchical names; role: of these, only those with this role in their
    cell, None for all; mirror: of these, only those on gate lines of this pattern, None for all; w, l: metre; m: number
    in parallel; times: devices in parallel over the present number; None leaves a size as it is. The upper device of a
    self-cascode gets m and times with the lower one, w and l only by its own name, without a pattern.
    """

    name: str = "*"
    role: Role | None = None
    mirror: str | None = None
    w: float | None = None
    l: float | None = None  # noqa: E741 - the field's own letter
    m: int | None = None
    times: int | None = None

    def __post_init__(self) -> None:
        """Raise InputError for an entry that changes nothing, or that no transistor could follow."""
        given = {key: value for key in ("w", "l", "m", "times") if (value := getattr(self, key)) is not None}
        if not given or {"m", "times"} <= given.keys():
            raise InputError("must have w, l, and m or times, or some of these; m and times exclude each other")
        for key, value in given.items():
            (SIDE if key in "wl" else PARALLEL).check(key, value)
        _check_pattern("name", self.name)
        if self.mirror is not None:
            _check_pattern("mirror", self.mirror)

    def chooses(self, mos: Mos) -> bool:
        """Tell whether a transistor of a flat circuit is one of those that are meant, or the upper device of one."""
        if self.role is not None and self.role != mos.role:
            return False
        if self.mirror is not None and not ((line := line_of(mos)) and matches(self.mirror, line)):
            return False
        return mos.name == self.name or matches(self.name, _lower(mos))

    def apply(self, mos: Mos, size: Size, technology: Technology) -> Size:
        """Return a chosen transistor's size with the changes of this entry.

        size: as earlier entries have left it. Raises InputError for a side that is off the layout grid or smaller than
        any that the technology draws, and for too many devices in parallel.
        """
        w, l, m = size  # noqa: E741
        m = m * self.times if self.times is not None else self.m or m
        PARALLEL.check(f"`overrides`: devices of {mos.name} in parallel", m)
        if _lower(mos) != mos.name != self.name:
            return w, l, m
        for key, side in (("w", self.w), ("l", self.l)):
            if side is not None:
                _check_side(key, side, technology)
        return self.w or w, self.l or l, m


def _check_side(key: str, side: float, technology: Technology) -> None:
    """Raise InputError for a W or L off the layout grid, or below the smallest that the technology draws."""
    grid, drawn = technology.grid, list(vars(technology.sizing).values())
    upper = [dict(zip("wl", one.cascode, strict=True)) for one in drawn if one.cascode is not None]
    least = min(one[key] for one in (*map(vars, drawn), *upper))
    if abs(side / grid - round(side / grid)) > _GRID:
        raise InputError(
            f"`overrides`: {key} must be a multiple of {technology.name}'s layout grid {grid:g} m, not {side:g} m; "
            f"{max(technology.snap(side), grid):g} m is the nearest"
        )
    if side < least * (1 - _GRID):
        raise InputError(
            f"`overrides`: {key} must be at least {least:g} m, the smallest that cosim draws in {technology.name}, not "
            f"{side:g} m"
        )


@dataclass(frozen=True, kw_only=True)
class BiasOverride:
    """A new current for bias pins of a circuit.

    pin: a pattern (`matches`) of their names; current: into each pin, ampere, or factor: over the compiled current.
    """

    pin: str
    current: float | None = None
    factor: float | None = None

    def __post_init__(self) -> None:
        """Raise InputError unless the entry has one of current and factor, within its bounds."""
        if (self.current is None) == (self.factor is None):
            raise InputError("must have a current or a factor, one of them")
        if self.current is not None:
            CURRENT.check("current", self.current)
        if self.factor is not None:
            FACTOR.check("factor", self.factor)
        _check_pattern("pin", self.pin)


@dataclass(frozen=True)
class Overrides:
    """All overrides of a circuit, in the order in which they apply."""

    transistors: tuple[TransistorOverride, ...] = ()
    bias: tuple[BiasOverride, ...] = ()

    def __bool__(self) -> bool:
        """Tell whether there is anything to change."""
        return bool(self.transistors or self.bias)


def read_overrides(path: Path) -> Overrides:
    """Read overrides from a TOML file.

    Raises InputError that names file, entry, field and what it must be.
    """
    where, content = shown_path(path), read_toml(path, _REPAIR)
    if strange := [name for name in content if name not in ("transistors", "bias")]:
        raise InputError(f"{where}: {shown(strange[0])} is no list of entries; {_REPAIR}")
    transistors = tuple(_read(content, "transistors", TransistorOverride, where))
    bias = tuple(_read(content, "bias", BiasOverride, where))
    if not (transistors or bias):
        raise InputError(f"{where}: must have an entry or more; {_REPAIR}")
    return Overrides(transistors, bias)


def _read(content: Mapping[str, Any], table: str, kind: type[T], where: str) -> Iterator[T]:
    """Yield the entries under `[[table]]` in the content of a file of overrides, as records of this kind."""
    entries: Any = content.get(table, [])
    if not isinstance(entries, list):
        raise InputError(f"{where}: {table} must be entries, each under [[{table}]], not {shown(entries)}; {_REPAIR}")
    for number, entry in enumerate(cast("list[Any]", entries)):
        place = f"{where}: {table}[{number}]"
        if not isinstance(entry, dict):
            raise InputError(f"{place} must be an entry under [[{table}]], not {shown(entry)}; {_REPAIR}")
        values = cast("dict[str, object]", entry)
        check_known(values, kind, place, _REPAIR)
        for name, unit in _QUANTITIES.items():
            if isinstance(text := values.get(name), str):
                values[name] = parse_quantity(text, unit, f"{place}: {name}")
        yield typed(values, kind, place, _REPAIR)


def format_overrides(overrides: Overrides) -> str:
    """Format overrides as the TOML that `read_overrides` reads, without the fields that change nothing."""
    lines = list[str]()
    for table, entries in (("transistors", overrides.transistors), ("bias", overrides.bias)):
        for entry in entries:
            values = ((one.name, getattr(entry, one.name), one.default) for one in fields(entry))
            given = (
                f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value, usual in values if value != usual
            )
            lines += [f"[[{table}]]", *given, ""]
    return "\n".join(lines)


def override_bias(assembly: Assembly, overrides: Overrides, origin: str) -> Assembly:
    """Return an assembly with the bias currents that overrides give. Raises MappingError for a pin that is not there.

    origin: the network's file, for messages.
    """
    pins = dict(assembly.bias_pins)
    for number, entry in enumerate(overrides.bias):
        chosen = [pin for pin in pins if matches(entry.pin, pin)]
        if not chosen:
            raise _nothing(origin, f"bias[{number}]", {"pin": (entry.pin, pins)})
        for pin in chosen:
            pins[pin] = entry.current or pins[pin] * (entry.factor or 1.0)
            CURRENT.check(f"`overrides`: the current into {pin}", pins[pin])
    return replace(assembly, bias_pins=pins)


def override_transistors(circuit: Circuit, overrides: Overrides, technology: Technology, origin: str) -> Circuit:
    """Return a circuit with the transistor sizes that overrides give.

    An instance with a changed transistor gets a subcircuit of its own, which equal instances share. Raises MappingError
    for a pattern that no transistor has, InputError for a size off the layout grid.
    """
    devices = {mos.name: mos for mos in circuit.flatten()}
    sizes: dict[str, Size] = {}
    for number, entry in enumerate(overrides.transistors):
        chosen = [mos for mos in devices.values() if entry.chooses(mos)]
        if not chosen:
            lines = {line_of(mos) for mos in devices.values()}
            roles = {str(mos.role) for mos in devices.values()}
            names = {_lower(mos) for mos in devices.values()}
            found = ("name", entry.name, names), ("mirror", entry.mirror, lines), ("role", entry.role, roles)
            raise _nothing(
                origin, f"transistors[{number}]", {key: (text, there) for key, text, there in found if text is not None}
            )
        for mos in chosen:
            sizes[mos.name] = entry.apply(mos, sizes.get(mos.name, (mos.w, mos.l, mos.m)), technology)
    return resize(circuit, sizes)


def line_of(mos: Mos) -> str:
    """Return the gate line of the mirror that a transistor of a flat circuit is in; "" for a switch."""
    return mos.match.removesuffix(_UPPER).removeprefix(f"x{NETWORK}.")


def _lower(mos: Mos) -> str:
    """Return the name of a transistor, for the upper device of a self-cascode that of the lower one."""
    return mos.name[:-1] if mos.match.endswith(_UPPER) else mos.name


def matches(pattern: str, name: str) -> bool:
    """Tell whether a name fits a pattern, in which `*` stands for any text, `?` for one letter, `#` for a number."""
    return _compiled(pattern).fullmatch(name) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a pattern, in which no `*` is tried again once what follows it was found."""
    first, *others = (
        re.escape(part).replace(r"\?", ".").replace(r"\#", r"\d+")
        for part in re.split(r"\*+", re.sub("#+", "#", pattern))
    )
    if not others:
        return re.compile(first)
    return re.compile(first + "".join(f"(?>.*?{part})" for part in others[:-1]) + f".*{others[-1]}")


def _check_pattern(field: str, pattern: str) -> None:
    if not (pattern.isascii() and pattern.isprintable() and 1 <= len(pattern) <= _LONGEST):
        raise InputError(f"{field} must be printable ASCII text of 1 to {_LONGEST} characters, not {shown(pattern)}")


def _nothing(origin: str, entry: str, fields: Mapping[str, tuple[str, Iterable[str]]]) -> MappingError:
    """Return the error for an entry that chooses nothing. fields: name -> (pattern, what the network has)."""
    wrong = {key: one for key, one in fields.items() if not any(matches(one[0], name) for name in one[1])}
    if not wrong:
        both = " and ".join(f"{key} {shown_name(pattern)}" for key, (pattern, _) in fields.items())
        return MappingError(f"{origin}: {entry} of `overrides` is for no transistor, because none has {both} together")
    key, (pattern, names) = next(iter(wrong.items()))
    near = ", ".join(get_close_matches(pattern, sorted(names), n=3, cutoff=0.3)) or "none like it"
    return MappingError(
        f"{origin}: {entry} of `overrides` is for nothing: the network has no {key} {shown_name(pattern)}, but {near}; "
        "the page of cosim compile lists all"
    )


def resize(circuit: Circuit, sizes: Changes) -> Circuit:
    """Return a circuit with new sizes of transistors. sizes: path of a transistor -> W, L (metre) and devices."""
    blocks = {block.name: block for block in circuit.subcircuits}
    variants: dict[str, list[_Key]] = defaultdict(list)

    def visit(elements: tuple[Element, ...], changes: Changes) -> None:
        below = _by_instance(changes)
        for element in elements:
            if isinstance(element, Instance):
                inside = below.get(element.name, {})
                if (key := _key(inside)) not in variants[element.subcircuit]:
                    variants[element.subcircuit].append(key)
                    visit(blocks[element.subcircuit].elements, inside)

    visit(circuit.elements, sizes)
    names = {(name, key): one for name, keys in variants.items() for key, one in _names(name, keys)}

    def built(elements: tuple[Element, ...], changes: Changes) -> Iterator[Element]:
        below = _by_instance(changes)
        for element in elements:
            if isinstance(element, Instance):
                key = _key(below.get(element.name, {}))
                yield replace(element, subcircuit=names[element.subcircuit, key])
            elif isinstance(element, Mos) and element.name in changes:
                w, l, m = changes[element.name]  # noqa: E741
                yield replace(element, w=w, l=l, m=m)
            else:
                yield element

    subcircuits = tuple(
        Subcircuit(names[block.name, key], block.ports, tuple(built(block.elements, dict(key))), block.summary)
        for block in circuit.subcircuits
        for key, _ in _names(block.name, variants[block.name])
    )
    return Circuit(circuit.title, subcircuits, tuple(built(circuit.elements, sizes)))


def _by_instance(changes: Changes) -> dict[str, dict[str, Size]]:
    """Return instance -> path below it -> size, for the changes inside of instances."""
    found: dict[str, dict[str, Size]] = defaultdict(dict)
    for path, size in changes.items():
        name, dot, rest = path.partition(".")
        if dot:
            found[name][rest] = size
    return found


def _key(changes: Changes) -> _Key:
    return tuple(sorted(changes.items()))


def _names(block: str, keys: list[_Key]) -> Iterator[tuple[_Key, str]]:
    """Yield each variant of a subcircuit with its name: the subcircuit's own for the one without changes, or the first.

    The others are called `<block>_changed_1`, `<block>_changed_2`, ... A subcircuit without instances has no variant.
    """
    if not keys:
        return
    own = () if () in keys else keys[0]
    yield own, block
    for number, key in enumerate((one for one in keys if one != own), start=1):
        yield key, f"{block}_changed_{number}"


def changed_transistors(compiled: Assembly, changed: Assembly) -> dict[str, tuple[Mos, Mos]]:
    """Return the transistors whose size overrides change: name -> (as compiled, as changed)."""
    new = {mos.name: mos for mos in changed.circuit.flatten()}
    pairs = ((mos, new[mos.name]) for mos in compiled.circuit.flatten() if mos.name in new)
    return {mos.name: (mos, now) for mos, now in pairs if (mos.w, mos.l, mos.m) != (now.w, now.l, now.m)}


def changed_pins(compiled: Assembly, changed: Assembly) -> dict[str, tuple[float, float]]:
    """Return the bias pins whose current overrides change: name -> (as compiled, as changed), ampere."""
    pins = ((pin, current, changed.bias_pins[pin]) for pin, current in compiled.bias_pins.items())
    return {pin: (current, now) for pin, current, now in pins if current != now}


def current_factors(compiled: Assembly, changed: Assembly) -> dict[str, float]:
    """Return the natural logarithm of current factors by which overrides change a circuit: transistor -> ln factor.

    A transistor's current at its gate voltage grows with m W / L. A larger current into a bias pin is the same as a
    weaker diode there.
    """
    factors = {
        name: math.log((now.m * now.w / now.l) / (mos.m * mos.w / mos.l))
        for name, (mos, now) in changed_transistors(compiled, changed).items()
    }
    roles = compiled.circuit.roles()
    for pin, (current, now) in changed_pins(compiled, changed).items():
        diode = roles[instance(pin), "bias"]
        factors[diode] = factors.get(diode, 0.0) - math.log(now / current)
    return factors
