"""Foundry libraries: one transistor of one size becomes one plain model card with numbers only.

A foundry's library holds thousands of lines per device: sections per corner, parameters that refer to each other,
models in bins of length and width, and around them a subcircuit that draws mismatch. A simulator reads all of that
again for every deck, 0.8 s for sky130. Here the section is read once, and for each size that a circuit uses the bin
that covers it becomes one card: expressions evaluated, statistics at their means, the subcircuit's `delvto` added to
`vth0` and its `mulu0` multiplied into `u0`, which is what BSIM4 does with them.

Cards leave out what has no effect at nanoampere: diffusion and substrate resistances (`rbodymod`, below 1 kohm, but
three more nodes per transistor), and checks of parameters, which write files (`paramchk`).
tests/technology/test_kits.py compares the cards with the foundry's own library.

`device_cards` returns the cards that a deck needs: one per transistor type and size, from the technology's library and
corner.

Arithmetic of SPICE parameters, such as `{0.7*par_k*1e-06/p}`, `'w*2'`, `10u`, `agauss(0,1,1)`, is evaluated without
`eval`. Random functions give their mean, which leaves the nominal device, because cosim draws variation itself.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from cosim.base.errors import InputError
from cosim.base.text import is_file, listed, read_bytes, shown
from cosim.technology.types import Polarity, Technology

Size = tuple[Polarity, float, float]  # polarity, w and l in metre

_SUFFIXES = {
    "t": 1e12, "g": 1e9, "meg": 1e6, "x": 1e6, "k": 1e3, "mil": 25.4e-6, "m": 1e-3, "u": 1e-6, "n": 1e-9, "p": 1e-12,
    "f": 1e-15, "a": 1e-18,
}  # fmt: skip
LONGEST = 4000  # characters; those of the open kits have 205
# `++` and the like give nothing back, so that a long row of digits takes linear time
_NUMBER = re.compile(r"(?<![\w.])((?:\d++\.?+\d*+|\.\d++)(?:e[+-]?\d++)?+)(meg|mil|[tgxkmunpfa])?[a-z]*+(?![\w.])")
_GROUPED = re.compile(r"(?<![\w.])[\d.]++_")  # 1_000, which Python would take for 1000
_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: operator.pow, ast.USub: operator.neg, ast.UAdd: operator.pos,
}  # fmt: skip
_COMPARISONS: dict[type, Callable[..., bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip


def _pwr(base: float, exponent: float) -> float:
    """Compute pwr(x, y), as foundry libraries use it, for x of at least 0.

    Below 0 simulators differ: |x|^y in ngspice, -|x|^y in HSPICE.
    """
    if base < 0:
        raise ValueError("pwr of a negative number")
    return math.pow(base, exponent)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": math.sqrt, "exp": math.exp, "ln": math.log, "log": math.log, "log10": math.log10, "abs": abs, "max": max,
    "min": min, "pow": math.pow, "pwr": _pwr, "int": int, "floor": math.floor, "ceil": math.ceil,
    "agauss": lambda mean, *_: mean, "gauss": lambda mean, *_: mean, "aunif": lambda mean, *_: mean,
    "unif": lambda mean, *_: mean, "limit": lambda mean, *_: mean,
}  # fmt: skip


class Parameters:
    """Parameters of a foundry library by lower-case name, each evaluated when it is first read.

    `outer` is searched for names that are not here. Raises InputError for an unknown name, a circular definition or an
    expression that is no arithmetic.
    """

    def __init__(self, texts: Mapping[str, str], outer: "Parameters | None" = None) -> None:
        self.texts, self.outer = dict(texts), outer
        self.values: dict[str, float] = {}
        self.pending: set[str] = set()

    def __getitem__(self, name: str) -> float:
        if name in self.values:
            return self.values[name]
        if name not in self.texts:
            if self.outer is None:
                raise InputError(f"parameter {name!r} is used but not defined")
            return self.outer[name]
        if name in self.pending:
            raise InputError(f"parameter {name!r} is defined by itself")
        self.pending.add(name)
        try:
            self.values[name] = self.evaluate(self.texts[name])
        finally:
            self.pending.discard(name)
        return self.values[name]

    def evaluate(self, text: str) -> float:
        """Evaluate an expression of a foundry library to a number. Raises InputError if it has no finite value."""
        value = self._evaluate(text)
        if isinstance(value, complex) or not math.isfinite(value):
            raise InputError(f"cannot evaluate {shown(text.strip())}: {value} is no finite number")
        return value

    def _evaluate(self, text: str) -> float:
        if len(text) > LONGEST:
            raise InputError(f"an expression must have at most {LONGEST} characters, not {len(text)}: {shown(text)}")
        if not text.isascii() or _GROUPED.search(text):
            raise InputError(
                f"cannot evaluate {shown(text.strip())}: a number has digits, a point and an exponent or letter"
            )
        try:
            return float(text)
        except ValueError:
            pass
        try:
            return self._reduce(_parse(text))
        except (SyntaxError, ValueError, ArithmeticError, TypeError, RecursionError, MemoryError) as error:
            # the parser of Python answers what is nested too deeply for it with a MemoryError
            why = error.msg if isinstance(error, SyntaxError) else error
            raise InputError(f"cannot evaluate {shown(text.strip())}: {why or 'it is nested too deeply'}") from None

    def _reduce(self, node: ast.expr) -> float:
        match node:
            case ast.Constant(value=float(value)):  # every decimal number is one by now; 0x10 or 1_000 is none
                return value
            case ast.Name(id=name):
                return self[name]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](self._reduce(left), self._reduce(right))
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](self._reduce(operand))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
                return float(_COMPARISONS[type(op)](self._reduce(left), self._reduce(right)))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
                return float(_FUNCTIONS[name](*map(self._reduce, args)))
        raise ValueError(f"{ast.unparse(node)!r} is not arithmetic")


@lru_cache(maxsize=1024)
def _parse(text: str) -> ast.expr:
    """Return the tree of a foundry library's expression, its numbers with their suffixes applied."""
    plain = text.lower().translate(str.maketrans("{}", "()", "'\"")).replace("^", "**")
    plain = _NUMBER.sub(lambda found: repr(float(found[1]) * _SUFFIXES.get(found[2] or "", 1.0)), plain).strip()
    tree = ast.parse(plain, mode="eval")
    _check_powers(tree, plain)
    return tree.body


def _check_powers(tree: ast.AST, text: str) -> None:
    """Raise InputError for a power of a power without parentheses in a foundry library's expression.

    a^b^c is a^(b^c) to Python, (a^b)^c to ngspice.
    """
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(op=ast.Pow(), right=ast.BinOp(op=ast.Pow(), col_offset=start)):
                if not text[:start].rstrip().endswith("("):
                    raise ValueError("simulators differ in what a^b^c is; write (a^b)^c or a^(b^c)")


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
_NOT_NUMBERS = {"version", "lmin", "lmax", "wmin", "wmax", "paramchk", "rbodymod"}  # as it stands, or left out
_BIN = re.compile(r"\.\d+$")
_VERSION = re.compile(r"[\d.]+")
_SHIFTS = ("delvto", "delvt0")  # two names of one parameter
_DRAWN = {"w", "l", "nf", "m", "ad", "as", "pd", "ps", "nrd", "nrs", "mulu0", *_SHIFTS}  # checked, or drawn by cosim
_BSIM4 = (14, 54)  # ngspice's level, HSPICE's
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
    """The BSIM4 card of one transistor type and size.

    parameters: name -> number at 12 digits, in the library's order, `level` among them; version: of BSIM4, such as
    4.8.1, "" if the model states none.
    """

    name: str
    polarity: Polarity
    version: str
    parameters: Mapping[str, float]


@dataclass(frozen=True)
class _Model:
    """A bin of a device model: its name (name.k), n or p type, and its parameters as text."""

    name: str
    kind: str
    parameters: dict[str, str]


@dataclass
class _Device:
    """The subcircuit of a device in a foundry library, or a bare model.

    model, nets, instance: of its first transistor, the model, the nets and the parameters given to it; transistors: how
    many there are; resistors: nets of each; conditional: whether a part of the subcircuit is between .if and .endif;
    stranger: first element that is neither transistor nor resistor.
    """

    ports: frozenset[str] = frozenset()
    parameters: dict[str, str] = field(default_factory=dict)
    model: str = ""
    nets: tuple[str, ...] = ()
    instance: dict[str, str] = field(default_factory=dict)
    transistors: int = 0
    resistors: list[tuple[str, ...]] = field(default_factory=list)
    conditional: bool = False
    stranger: str = ""
    models: list[_Model] = field(default_factory=list)


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
    conditions = 0
    for line in lines:
        word, _, rest = line.partition(" ")
        conditions += line.startswith((".if ", ".if(")) - (word == ".endif")
        if conditions and device is not None:
            device.conditional = True
        elif conditions and word in (".param", ".model", ".subckt"):
            raise InputError(f"{path}: section {name}: {line[:60]!r} is under an .if, which is not read; write it out")
        if word == ".param":
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
        elif device is not None and word.startswith("m") and len(words := rest.split()) > 4:
            device.transistors += 1
            if not device.model:
                device.nets, device.model, device.instance = tuple(words[:4]), words[4], _assignments(rest)
        elif device is not None and word.startswith("r"):
            device.resistors.append(tuple(rest.split()[:2]))
        elif device is not None and not word.startswith("."):
            device.stranger = device.stranger or line
    return LibrarySection(path, name, Parameters(parameters | _assignments(given)), devices, models, tnom)


@cache  # the same few sizes for every deck of a worker
def model_card(section: LibrarySection, device: str, drawn: DrawnTransistor, name: str) -> ModelCard:
    """Return the card, named `name`, of a library's `device` for one drawn size.

    Raises InputError if the library lacks the device or the size, or if the device is not one BSIM4 transistor of the
    drawn size.
    """
    where = f"{section.path}: section {section.name}"
    wrapped, bins = _find(section, device)
    if not bins:
        known = sorted(name for name, found in section.devices.items() if found.model) or sorted(section.models)
        raise InputError(f"{where} must have the transistor {device!r}; it has {listed(known)}")
    _check_subcircuit(f"{where}: {device}", wrapped)
    texts = {"w": repr(drawn.w / drawn.unit), "l": repr(drawn.l / drawn.unit), "m": "1", "mult": "1"}
    values = Parameters({**wrapped.parameters, **texts}, section.parameters)
    outside = values if bins[0] in wrapped.models else section.parameters  # what a model's own expressions see
    found = _bin(where, bins, outside, drawn)
    if found is None:
        raise InputError(
            f"{where}: {device} has no model of w {drawn.w * 1e6:g} um, l {drawn.l * 1e6:g} um; change this size in "
            "the technology"
        )
    if found.kind != f"{drawn.polarity}mos":
        raise InputError(
            f"{where}: model {found.name} of {device} must be of type {drawn.polarity}mos, not {found.kind!r}; name "
            f"another device under [{drawn.polarity}fet] of the technology"
        )
    try:
        _check_instance(wrapped.instance, values, drawn)
        numbers = {key: outside.evaluate(text) for key, text in found.parameters.items() if key not in _NOT_NUMBERS}
        if section.tnom is not None:
            numbers.setdefault("tnom", section.parameters.evaluate(section.tnom))
        version = _version(found.parameters.get("version"), outside)
        _deviate(numbers, wrapped.instance, values)
        if numbers.get("level") not in _BSIM4:
            raise InputError(f"level must be 14 or 54, BSIM4, not {found.parameters.get('level', 'absent')}")
    except InputError as error:
        raise InputError(f"{where}, model {found.name}: {error}") from None
    return ModelCard(name, drawn.polarity, version, {key: float(f"{value:.12g}") for key, value in numbers.items()})


def _deviate(numbers: dict[str, float], instance: dict[str, str], values: Parameters) -> None:
    """Apply a subcircuit's threshold shift and mobility factor to the numbers of its transistor's model card.

    The shift is added to vth0, the factor multiplies u0.
    """
    shift = sum(values.evaluate(instance[key]) for key in _SHIFTS if key in instance)
    mobility = values.evaluate(instance.get("mulu0", "1"))
    for key, changed, word in (("vth0", shift != 0, "delvto"), ("u0", mobility != 1, "mulu0")):
        if changed and key not in numbers:
            raise InputError(f"{word} is given, but {key} is not")
    if shift != 0:
        numbers["vth0"] += shift
    if mobility != 1:
        numbers["u0"] *= mobility


@cache
def is_sized(section: LibrarySection, device: str) -> bool:
    """Tell whether the card of a device depends on its size: a bare model without bins does not."""
    return device.lower() in section.devices or len(_find(section, device)[1]) > 1


def _find(section: LibrarySection, device: str) -> tuple[_Device, list[_Model]]:
    """Return a device of a foundry library, and its bins: those of its own subcircuit, or of the section.

    A bare model counts as a device without a subcircuit.
    """
    wrapped = section.devices.get(device.lower()) or _Device(model=device.lower())
    own = [model for model in wrapped.models if _stem(model.name) == wrapped.model]
    return wrapped, own or section.models.get(wrapped.model, [])


def _stem(name: str) -> str:
    return _BIN.sub("", name)


def _version(text: str | None, values: Parameters) -> str:
    """Return a model's BSIM4 version: as text, such as 4.8.1, or evaluated if it is an expression; "" if absent."""
    if text is None:
        return ""
    plain = text.strip("'\"{}() ")
    return plain if _VERSION.fullmatch(plain) else f"{values.evaluate(text):g}"


def _check_subcircuit(where: str, wrapped: _Device) -> None:
    if wrapped.conditional:
        raise InputError(f"{where} is under an .if, which is not read; write its subcircuit without one")
    if wrapped.stranger:
        raise InputError(
            f"{where} must hold one transistor and nothing else but resistors, not {wrapped.stranger[:60]!r}; name "
            "another device"
        )
    if wrapped.transistors > 1:
        raise InputError(f"{where} must hold one transistor, not {wrapped.transistors}; name another device")
    ports = wrapped.ports
    beside = next((nets for nets in wrapped.resistors if ports.issuperset(nets)), None)
    if beside is not None:
        raise InputError(f"{where} has a resistor between its ports {' and '.join(beside)}; name another device")
    reached = ports.union(*wrapped.resistors)
    loose = [net for net in wrapped.nets if net not in reached]
    if loose:
        raise InputError(
            f"{where} must connect its transistor to its ports, but {loose[0]} is none; name another device"
        )


def _check_instance(instance: dict[str, str], values: Parameters, drawn: DrawnTransistor) -> None:
    """Raise InputError if a subcircuit gives its transistor anything but the drawn size, a shift and a mobility.

    The size may be in the library's length unit or in metre.
    """
    for key, text in instance.items():
        if key not in _DRAWN and (other := values.evaluate(text)) != 0:
            raise InputError(f"the transistor's {key} must be 0, what it does is not read, not {text} = {other:g}")
    sizes = ("w", (drawn.w / drawn.unit, drawn.w)), ("l", (drawn.l / drawn.unit, drawn.l))
    for key, allowed in (*sizes, ("nf", (1.0,)), ("m", (1.0,))):
        given = values.evaluate(instance[key]) if key in instance else allowed[0]
        if not any(math.isclose(given, value, rel_tol=_TOLERANCE) for value in allowed):
            raise InputError(
                f"the transistor's {key} must be {allowed[0]:g}, as drawn, not {instance[key]} = {given:g}"
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


_DEFAULT_TOXE = 3e-9  # m; BSIM4's


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
    """Return the electrical thickness of the gate oxide, m: TOXE on the BSIM4 card of the mirrors' unit device."""
    drawn = {"n": technology.sizing.mirror_n, "p": technology.sizing.mirror_p}[polarity]
    (card,) = device_cards(technology, [(polarity, drawn.w, drawn.l)])
    return card.parameters.get("toxe", _DEFAULT_TOXE)


def _section(technology: Technology) -> LibrarySection:
    library = technology.library
    given = library.flicker_worst if technology.flicker == "worst" else ""
    return read_section(library.file, library.sections[technology.corner], library.also, given)
