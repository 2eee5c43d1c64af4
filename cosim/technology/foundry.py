"""Foundry libraries: one transistor of one size becomes one plain model card with numbers only.

A foundry's library holds thousands of lines per device: sections per corner, parameters that refer to each other,
models in bins of length and width, and around them a subcircuit that draws mismatch. A simulator reads all of that
again for every deck, 0.8 s for sky130. Here the section is read once, and for each size that a circuit uses the bin
that covers it becomes one card: expressions and conditions evaluated, statistics at their means, and what the
subcircuit itself gives to its transistor taken into the card.

What a card of a family of models, such as BSIM4, has in it is that family's matter, see `cosim.technology.models`.
tests/technology/test_kits.py compares the cards with the foundry's own library.

`device_cards` returns the cards that a deck needs: one per transistor type and size, from the technology's library and
corner.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path

from cosim.base.errors import InputError
from cosim.base.text import is_file, listed, read_bytes, shown
from cosim.technology.models.family import ModelFamily
from cosim.technology.models.table import FAMILIES, family_of
from cosim.technology.parameters import Parameters
from cosim.technology.types import Polarity, Technology

Size = tuple[Polarity, float, float]  # polarity, w and l in metre

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|\S+")  # words; what stands in quotes is one
_DEPTH, _FILES = 20, 2000  # how deep files include each other, and how often in all; the open kits open 10
_FILE_LIMIT = 16 << 20  # bytes; the largest file of the open kits has 2 MB
_CHARACTERS = 40_000_000  # in all files of a section, as often as each is included; the open kits have 6 million
_LINE = 100  # characters that a line counts for beside its own, as it takes time, too


@dataclass
class ReadBudget:
    """The number of files and characters that the reading of one section has taken so far, to limit it.

    A file that is included several times counts each time, because such inclusions can multiply.
    """

    files: int = 0
    characters: int = 0

    def add(self, path: Path, lines: tuple[str, ...]) -> None:
        """Add the lines of one file of a foundry library. Raises InputError for the file that exceeds a limit."""
        self.files += 1
        self.characters += sum(map(len, lines)) + _LINE * len(lines)
        if self.files > _FILES or self.characters > _CHARACTERS:
            raise InputError(
                f"{path}: a section must include at most {_FILES} files with {_CHARACTERS // 10**6} million "
                "characters; do files include each other many times?"
            )


def read_lines(path: Path, section: str | None, taken: ReadBudget, depth: int = 0) -> Iterator[str]:
    """Yield the logical lines of a file, or of its section, in lower case, with those of included files.

    taken: what was read so far; depth: of inclusion. Raises InputError that names the file and what it lacks, or the
    limit that it exceeds.
    """
    if depth > _DEPTH:
        raise InputError(f"{path}: files include each other more than {_DEPTH} deep")
    inside, seen = section is None, False
    lines = read_file(path)
    taken.add(path, lines)
    for line in lines:
        word, *rest = _QUOTED.findall(line) if line.lower().startswith((".lib ", ".inc")) else line.split()
        match word.lower(), rest:
            case ".lib", [name]:
                if section is not None and _plain(name).lower() == section:
                    inside = seen = True
                elif section is None:
                    inside = False
            case ".endl", _:
                inside = section is None
            case ".lib", [file, name] if inside:
                yield from read_lines(_beside(path, file), _plain(name).lower(), taken, depth + 1)
            case ".include" | ".inc", [file, *_] if inside:
                yield from read_lines(_beside(path, file), None, taken, depth + 1)
            case ".include" | ".inc" | ".subckt", [] if inside:
                raise InputError(f"{path}: {word} must be followed by a name")
            case ".lib", [] | [_, _, _, *_] if inside:
                raise InputError(
                    f"{path}: .lib must be followed by a section, or by a file and a section: {line[:60]!r}"
                )
            case _ if inside:
                yield line.lower()
            case _:
                pass
    if section is not None and not seen:
        words = (line.lower().split() for line in lines)
        known = [_plain(found[1]) for found in words if found[0] == ".lib" and len(found) == 2]
        raise InputError(f"{path} must have the section {section!r}; it has {listed(known)}")


@lru_cache(maxsize=32)
def read_file(path: Path) -> tuple[str, ...]:
    """Read a file of a foundry library as lines, with `+` continuations joined and without comments."""
    text = read_bytes(path, _FILE_LIMIT, "repair the device library").decode(errors="replace")
    joined: list[list[str]] = []
    for raw in text.splitlines():
        line = " ".join(raw.partition(";")[0].partition("$")[0].split())
        if not line or line.startswith("*"):
            continue
        if line.startswith("+") and joined:
            joined[-1].append(line[1:])
        else:
            joined.append([line])
    return tuple(" ".join(parts) for parts in joined)


def _plain(word: str) -> str:
    return word.strip("'\"")


def _beside(path: Path, word: str) -> Path:
    """Return the path of a file that the library file `path` includes; the case of its name is ignored.

    Simulators ignore case in file names too. Raises InputError for a word that cannot be the name of a file.
    """
    try:
        wanted = (path.parent / _plain(word)).resolve()
    except (ValueError, OSError, RuntimeError) as error:  # a null byte, links in a circle
        raise InputError(f"{path}: {shown(word)} cannot be the name of a file: {error}") from None
    if is_file(wanted) or not wanted.parent.is_dir():
        return wanted
    try:
        entries = sorted(wanted.parent.iterdir())
    except OSError as error:
        raise InputError(f"{wanted.parent}: cannot be read: {error.strerror}") from None
    return next((entry for entry in entries if entry.name.lower() == wanted.name.lower()), wanted)


_ASSIGNMENT = re.compile(r"(?<!\w)([a-z_]\w*+)\s*+=(?!=)\s*+")  # `+`: nothing is given back, linear time
_MODEL = re.compile(r"\s*(\S+)\s+(\w+)\s*(.*)")
_CONDITION = re.compile(r"\.(if|elseif|else|endif)\b\s*(.*)")
_BIN = re.compile(r"\.\d+$")
_VERSION = re.compile(r"[\d.]+")
_SHIFTS = ("delvto", "delvt0")  # two names of one parameter
_LIMITS = ("lmin", "lmax", "wmin", "wmax")  # of a bin
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class DrawnTransistor:
    """A transistor as it is drawn: w and l in metre; unit: length unit of the foundry library, metre."""

    polarity: Polarity
    w: float
    l: float  # noqa: E741 - the field's own letter
    unit: float


@dataclass(frozen=True)
class ModelCard:
    """The model card of one transistor type and size.

    family: of its model; version: of the model, such as 4.8.1, "" if the card states none; parameters: name -> number
    at 12 digits, in the library's order; `level` may be among them, but a card's form writes its own.
    """

    name: str
    polarity: Polarity
    family: ModelFamily
    version: str
    parameters: Mapping[str, float]


@dataclass(frozen=True)
class _Model:
    """A bin of a device model: its name (name.k), its type word, such as nmos, and its parameters as text."""

    name: str
    kind: str
    parameters: dict[str, str]


_Condition = tuple[str, bool]  # the text of an .if, and whether it must hold


@dataclass(frozen=True)
class _Element:
    """An element of a device's subcircuit: its statement, and the conditions under which it is there."""

    text: str
    conditions: tuple[_Condition, ...]


@dataclass
class _Device:
    """The subcircuit of a device in a foundry library.

    elements: its transistors, resistors and others; unread: first parameter or model in it that is under an .if.
    """

    ports: frozenset[str] = frozenset()
    parameters: dict[str, str] = field(default_factory=dict)
    elements: list[_Element] = field(default_factory=list)
    models: list[_Model] = field(default_factory=list)
    unread: str = ""


@dataclass(frozen=True)
class _Transistor:
    """The one transistor in a device's subcircuit: its model, and the parameters that are given to it."""

    model: str
    instance: dict[str, str]


@dataclass(frozen=True, eq=False)
class LibrarySection:
    """One section of a foundry library: those parts that describe transistors."""

    path: Path
    name: str
    parameters: Parameters
    devices: dict[str, _Device]
    models: dict[str, list[_Model]]
    tnom: str | None  # of `.option`, for models that have none


@lru_cache(maxsize=16)
def read_section(path: Path, name: str, also: tuple[Path, ...] = (), given: str = "") -> LibrarySection:
    """Read a `.lib` section of a foundry library.

    also: files that the library expects to be included before it; given: a parameter, name=value, to set to another
    value than the files do. Raises InputError that names the file and what is missing in it.
    """
    taken = ReadBudget()
    lines = [line for file in also for line in read_lines(file, None, taken)]
    lines += read_lines(path, name.lower(), taken)
    parameters: dict[str, str] = {}
    devices: dict[str, _Device] = {}
    models: dict[str, list[_Model]] = {}
    device: _Device | None = None
    tnom: str | None = None
    under = list[list[_Condition]]()
    for line in lines:
        word, _, rest = line.partition(" ")
        if condition := _CONDITION.fullmatch(line):
            _change_conditions(under, *condition.groups())
        elif under and word in (".param", ".model", ".subckt"):
            if device is None:
                raise InputError(
                    f"{path}: section {name}: {line[:60]!r} is under an .if, which is not read; write it out"
                )
            device.unread = device.unread or line
        elif word == ".param":
            (parameters if device is None else device.parameters).update(_assignments(rest))
        elif word in (".option", ".options"):
            tnom = _assignments(rest).get("tnom", tnom)
        elif word == ".subckt":
            first = _ASSIGNMENT.search(rest)
            called, *ports = rest[: first.start() if first else None].split()
            device = _Device(frozenset(ports) - {"params:"}, _assignments(rest))
            devices[called] = device
        elif word == ".ends":
            device = None
        elif word == ".model":
            found = _read_model(rest)
            if device is None:
                models.setdefault(_stem(found.name), []).append(found)
            else:
                device.models.append(found)
        elif device is not None and not word.startswith("."):
            device.elements.append(_Element(line, tuple(one for level in under for one in level)))
    return LibrarySection(path, name, Parameters(parameters | _assignments(given)), devices, models, tnom)


def _change_conditions(under: list[list[_Condition]], word: str, text: str) -> None:
    """Change the open conditions of a foundry library at an .if, .elseif, .else or .endif.

    under: for each open .if, what holds in its present branch: none of the conditions before, and its own.
    """
    match word:
        case "if":
            under.append([(text, True)])
        case "endif":
            del under[-1:]
        case _ if under:
            under[-1] = [(condition, False) for condition, _ in under[-1]]
            under[-1] += [(text, True)] if word == "elseif" else []
        case _:
            pass


@cache  # the same few sizes for every deck of a worker
def model_card(section: LibrarySection, device: str, drawn: DrawnTransistor, name: str) -> ModelCard:
    """Return the card, named `name`, of a library's `device` for one drawn size.

    Raises InputError if the library lacks the device or the size, or if the device is not one transistor of the drawn
    size whose model cosim knows.
    """
    where = f"{section.path}: section {section.name}"
    texts = {"w": repr(drawn.w / drawn.unit), "l": repr(drawn.l / drawn.unit), "m": "1", "mult": "1"}
    wrapped = section.devices.get(device.lower())
    values = Parameters({**(wrapped.parameters if wrapped else {}), **texts}, section.parameters)
    inner = _Transistor(device.lower(), {}) if wrapped is None else _inner(f"{where}: {device}", wrapped, values)
    own = [model for model in wrapped.models if _stem(model.name) == inner.model] if wrapped else []
    bins = own or section.models.get(inner.model, [])
    if not bins:
        known = sorted(
            name for name, found in section.devices.items() if any(map(_is_transistor, found.elements))
        ) or sorted(section.models)
        raise InputError(f"{where} must have the transistor {device!r}; it has {listed(known)}")
    outside = values if own else section.parameters  # what a model's own expressions see
    found = _bin(where, bins, outside, drawn)
    if found is None:
        raise InputError(
            f"{where}: {device} has no model of w {drawn.w * 1e6:g} um, l {drawn.l * 1e6:g} um; change this size in "
            "the technology"
        )
    family = family_of(found.kind)
    if family is None:
        raise _other_type(where, found, device, drawn, found.kind)
    try:
        _check_instance(family, inner.instance, values, drawn)
        numbers = {
            key: outside.evaluate(text)
            for key, text in found.parameters.items()
            if key not in family.left_out | {"version", *_LIMITS} or key in ("level", "type")
        }
        if section.tnom is not None:
            numbers.setdefault("tnom", section.parameters.evaluate(section.tnom))
        version = _version(found.parameters.get("version"), outside)
        _deviate(family, numbers, inner.instance, values)
        if numbers.get("level") not in family.levels:
            levels = " or ".join(f"{level:g}" for level in family.levels)
            raise InputError(f"level must be {levels}, {family.name}, not {found.parameters.get('level', 'absent')}")
    except InputError as error:
        raise InputError(f"{where}, model {found.name}: {error}") from None
    if family.polarity(found.kind, numbers) != drawn.polarity:
        kind = f"{found.kind} type={numbers['type']:g}" if "type" in numbers else found.kind
        raise _other_type(where, found, device, drawn, kind)
    numbers = {key: value for key, value in numbers.items() if key not in family.left_out} | dict(family.fixed)
    kept = {key: float(f"{value:.12g}") for key, value in numbers.items()}
    return ModelCard(name, drawn.polarity, family, version, kept)


def _other_type(where: str, found: _Model, device: str, drawn: DrawnTransistor, kind: str) -> InputError:
    kinds = ", ".join(word for family in FAMILIES for word in family.kinds)
    known = "" if family_of(found.kind) else f" (cosim knows {kinds})"
    return InputError(
        f"{where}: model {found.name} of {device} must be of type {drawn.polarity}mos, not {kind!r}{known}; name "
        f"another device under [{drawn.polarity}fet] of the technology"
    )


def _deviate(family: ModelFamily, numbers: dict[str, float], instance: dict[str, str], values: Parameters) -> None:
    """Apply a subcircuit's threshold shift and mobility factor to the numbers of its transistor's model card."""
    shift = sum(values.evaluate(instance[key]) for key in {family.shift, *_SHIFTS} & instance.keys())
    mobility = values.evaluate(instance.get(family.factor, "1"))
    threshold = family.threshold, shift != 0, family.shift
    for key, changed, word in (threshold, (family.mobility, mobility != 1, family.factor)):
        if changed and key not in numbers:
            raise InputError(f"{word} is given, but {key} is not")
    if shift != 0:
        numbers[family.threshold] += shift
    if mobility != 1:
        numbers[family.mobility] *= mobility


@cache
def is_sized(section: LibrarySection, device: str) -> bool:
    """Tell whether the card of a device depends on its size: a bare model without bins does not."""
    return device.lower() in section.devices or len(section.models.get(device.lower(), [])) > 1


def _stem(name: str) -> str:
    return _BIN.sub("", name)


def _version(text: str | None, values: Parameters) -> str:
    """Return a model's version: as text, such as 4.8.1, or evaluated if it is an expression; "" if absent."""
    if text is None:
        return ""
    plain = text.strip("'\"{}() ")
    return plain if _VERSION.fullmatch(plain) else f"{values.evaluate(text):g}"


def _is_transistor(element: _Element) -> bool:
    """Tell whether an element is a transistor; ngspice loads the model of one that begins with n as Verilog-A."""
    return element.text[0] in "mn" and len(element.text.split()) > 5


def _inner(where: str, wrapped: _Device, values: Parameters) -> _Transistor:
    """Return the transistor in the subcircuit of a foundry's device, at the values of its parameters.

    Raises InputError where there is anything else than one transistor, or a resistor that is not in series with it.
    """
    if wrapped.unread:
        raise InputError(f"{where} has {wrapped.unread[:60]!r} under an .if, which is not read; write it out")
    transistors, resistors = list[list[str]](), list[list[str]]()
    for element in wrapped.elements:
        if not all(_holds(where, text, values) is wanted for text, wanted in element.conditions):
            continue
        if _is_transistor(element):
            transistors.append(element.text.split(maxsplit=6))
        elif element.text.startswith("r"):
            resistors.append(element.text.split()[1:3])
        else:
            raise InputError(
                f"{where} must hold one transistor and nothing else but resistors, not {element.text[:60]!r}; name "
                "another device"
            )
    if not transistors:
        if any(map(_is_transistor, wrapped.elements)):
            raise InputError(f"{where} has a transistor under conditions, none of which holds; name another device")
        return _Transistor("", {})
    if len(transistors) > 1:
        raise InputError(f"{where} must hold one transistor, not {len(transistors)}; name another device")
    ports = wrapped.ports
    beside = next((nets for nets in resistors if ports.issuperset(nets)), None)
    if beside is not None:
        raise InputError(f"{where} has a resistor between its ports {' and '.join(beside)}; name another device")
    _, *nets = transistors[0][:5]
    reached = ports.union(*resistors)
    loose = [net for net in nets if net not in reached]
    if loose:
        raise InputError(
            f"{where} must connect its transistor to its ports, but {loose[0]} is none; name another device"
        )
    return _Transistor(transistors[0][5], _assignments(" ".join(transistors[0][6:])))


def _holds(where: str, text: str, values: Parameters) -> bool:
    """Return whether a condition of a foundry's subcircuit holds. Raises InputError where it cannot be evaluated."""
    try:
        return values.evaluate(text) != 0
    except InputError as error:
        raise InputError(f"{where}: .if {text}: {error}") from None


def _check_instance(family: ModelFamily, instance: dict[str, str], values: Parameters, drawn: DrawnTransistor) -> None:
    """Raise InputError if a subcircuit gives its transistor anything but the drawn size and what its family knows.

    The size may be in the library's length unit or in metre.
    """
    for key, text in instance.items():
        if key not in family.instance and (other := values.evaluate(text)) != 0:
            raise InputError(f"the transistor's {key} must be 0, what it does is not read, not {text} = {other:g}")
    sizes = ("w", (drawn.w / drawn.unit, drawn.w)), ("l", (drawn.l / drawn.unit, drawn.l))
    others = ((key, (wanted,)) for key, wanted in family.instance.items() if wanted is not None)
    for key, allowed in (*sizes, *others):
        drawn_so = "" if key in (family.shift, family.factor) else ", as drawn"
        given = values.evaluate(instance[key]) if key in instance else allowed[0]
        if not any(math.isclose(given, value, rel_tol=_TOLERANCE) for value in allowed):
            raise InputError(
                f"the transistor's {key} must be {allowed[0]:g}{drawn_so}, not {instance[key]} = {given:g}"
            )


def _bin(where: str, bins: list[_Model], values: Parameters, drawn: DrawnTransistor) -> _Model | None:
    """Return the bin of a device model that covers the drawn size; None if no bin does.

    A size on the border of two bins belongs to the upper one, at the end of the last bin to that one.
    """
    for slack in (-_TOLERANCE, _TOLERANCE):
        for model in bins:
            if _covers(f"{where}, model {model.name}", model, values, drawn, slack):
                return model
    return None


def _covers(where: str, model: _Model, values: Parameters, drawn: DrawnTransistor, slack: float) -> bool:
    for size, low, high in ((drawn.l, "lmin", "lmax"), (drawn.w, "wmin", "wmax")):
        if low in model.parameters and high in model.parameters:
            try:
                start, end = values.evaluate(model.parameters[low]), values.evaluate(model.parameters[high])
            except InputError as error:
                raise InputError(f"{where}: {low}, {high}: {error}") from None
            if not start * (1 - _TOLERANCE) <= size < end * (1 + slack):
                return False
    return True


def _read_model(text: str) -> _Model:
    """Parse a device model of a foundry's library, `name kind a=1 b=2`, with or without parentheses."""
    found = _MODEL.match(text)
    name, kind, body = found.groups() if found else (text.strip(), "", "")
    return _Model(name, kind, _assignments(body[1:-1] if body.startswith("(") and body.endswith(")") else body))


def _assignments(text: str) -> dict[str, str]:
    """Parse `a = 1 b = {c + 2}` into {a: 1, b: {c + 2}}; a value reaches to the next name."""
    found = list(_ASSIGNMENT.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    return {match[1]: text[match.end() : end].strip() for match, end in zip(found, ends, strict=False)}


def card_name(technology: Technology, polarity: Polarity, w: float, l: float) -> str:  # noqa: E741
    """Return the name of the model card that describes a technology's device of this size, metre.

    It is the library's own name if one card fits all sizes.
    """
    device = technology.device(polarity).name
    if not is_sized(_section(technology), device):
        return device
    size = "_".join(f"{letter}{value * 1e6:.6g}" for letter, value in (("w", w), ("l", l)))
    return f"{device}_{size}".replace(".", "p")


def device_cards(technology: Technology, sizes: Iterable[Size]) -> tuple[ModelCard, ...]:
    """Return a technology's model cards for these sizes, sorted by name.

    Raises InputError if the library lacks a device or a size.
    """
    section, unit = _section(technology), technology.library.length_unit
    cards = {
        (name := card_name(technology, *size)): model_card(
            section, technology.device(size[0]).name, DrawnTransistor(*size, unit), name
        )
        for size in sizes
    }
    return tuple(cards[name] for name in sorted(cards))


def is_subcircuit(technology: Technology, polarity: Polarity) -> bool:
    """Tell whether a technology's device is a subcircuit of its library, around a transistor, and no bare model."""
    return technology.device(polarity).name.lower() in _section(technology).devices


def cards_source(technology: Technology) -> str:
    """Return a sentence on where the technology's cards come from, for a comment in a deck."""
    name, section = technology.library.file.name, _section(technology).name
    return f"devices of {technology.name}, from {name}, section {section}; its licence applies"


def oxide_thickness(technology: Technology, polarity: Polarity) -> float:
    """Return the thickness of the gate oxide on the card of the mirrors' unit device, m."""
    drawn = {"n": technology.sizing.mirror_n, "p": technology.sizing.mirror_p}[polarity]
    (card,) = device_cards(technology, [(polarity, drawn.w, drawn.l)])
    return card.parameters.get(*card.family.oxide)


def model_family(technology: Technology) -> ModelFamily:
    """Return the family of a technology's device models, such as BSIM4.

    Raises InputError where the library lacks its device, or cosim does not know the family of its model.
    """
    unit = technology.sizing.mirror_n
    (card,) = device_cards(technology, [("n", unit.w, unit.l)])
    return card.family


def _section(technology: Technology) -> LibrarySection:
    library = technology.library
    given = library.flicker_worst if technology.flicker == "worst" else ""
    return read_section(library.file, library.sections[technology.corner], library.also, given)
