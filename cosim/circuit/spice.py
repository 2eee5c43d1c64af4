"""Read netlists in SPICE's language: what a designer wrote or edited becomes a circuit as data.

    .param bias=2n
    .subckt mirror in out vdd ratio=4          parameters, with the values where an instance gives none
    m1 in in vdd vdd pfet w=1u l=5u            transistors of the technology, by its device's or its card's name
    m2 out in vdd vdd pfet w=1u l=5u m=ratio
    .ends
    xa in out vdd mirror ratio='2*3'
    c1 out 0 1p
    r1 out 0 10meg
    ib in 0 dc {bias}                          dc, pwl(...) and pulse(...)
    .tran 1u 1m                                or .dc SOURCE START STOP STEP, or .op; one of them
    .meas tran rise when v(out)=0.5 rise=1     see cosim.circuit.measures
    .nodeset v(out)=0.5                        where the search of the operating point begins
    .ic v(out)=0.5                             what holds there until a transient begins, as in SPICE without uic

A transistor whose model is loaded as compiled Verilog-A, as those of sg13g2, begins with n in place of m.

What is not understood is refused with the number of its line; nothing is left out silently. Models are those of the
technology, whatever the name of a card says beyond the device: the size is what `w` and `l` say. A parameter of a
subcircuit is evaluated for each instance, and instances with other values get a subcircuit of their own.
Syntax: ngspice manual, chapters 2 to 4. Case makes no difference; `gnd` is the net `0`.
"""

import keyword
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from cosim.base.bounds import Bounds
from cosim.base.errors import InputError, MappingError
from cosim.base.text import listed, shown
from cosim.circuit.bench import Analysis, Dc, Op, Tran, Voltage
from cosim.circuit.elements import GROUND, Capacitor, Circuit, Element, Instance, Mos, Resistor, Source, Subcircuit
from cosim.circuit.measures import Measure, parse_measure, signals_of
from cosim.technology.foundry import device_cards, is_subcircuit, model_family
from cosim.technology.parameters import Parameters
from cosim.technology.types import POLARITIES, Polarity, Technology

SIDE = Bounds(1e-8, 1e-3, "m")
PARALLEL = Bounds(1, 10_000)
_FARAD = Bounds(0.0, 1e-3, "F")
_SOURCE = Bounds(-100.0, 100.0)  # V or A
_OHM = Bounds(1e-3, 1e18, "ohm")
_MOST = 1_000_000  # elements of a flat circuit, its instances counted
_DEEPEST, _VARIANTS = 50, 10_000  # how deep subcircuits are nested, and how many there are, by values of parameters
_POINTS = 100_000  # of a source, or of a sweep
_LEAST_STEP = 1e-12  # V or A, of a sweep: ngspice ends one 2e-13 behind its last value
_NAME = re.compile(r"[a-z0-9_]{1,200}")
# a value with = before it may have parentheses, of two levels
_WORD = re.compile(
    r"[^\s=(),{}']+=(?:'[^']*'|\{[^}]*\}|(?:[^\s,()]|\((?:[^()]|\([^()]*\))*\))+)|'[^']*'|\{[^}]*\}|[^\s=(),{}']+"
)
_RANDOM = re.compile(r"\b(agauss|gauss|aunif|unif|limit)\s*\(")
_MASTERS = {"resistor", "capacitor", "inductor", "vsource", "isource", "bsim4", "sp_bsim4v8"}  # of Spectre and VACASK
_MEASURE = re.compile(r"\.meas(ure)?\s+(?=\S)")
_STARTED = re.compile(r"(\.nodeset|\.ic)\s+(?=\S)")
_BETWEEN = re.compile(r"[\s(),]*")
_CARD = r"(_w[\dp]+_l[\dp]+)?"  # what the name of a card has behind that of its device, where each size has one
_DIFFUSION = ("ad", "as", "pd", "ps")
_SET = re.compile(r"v\(\s*(?P<net>[a-z0-9_.]+)\s*\)\s*=\s*(?P<volts>'[^']*'|\{[^}]*\}|[^\s=(),]+)[\s,]*")
_RELTOL = Bounds(1e-9, 1e-3)
_REPAIR = (
    "cosim reads m, n, x, c, r, v and i, .subckt and .ends, .param, .options reltol, .tran, .dc, .op, .ic, .nodeset, "
    ".meas and .end"
)
_ELSEWHERE = {
    **dict.fromkeys((".lib", ".include", ".inc", ".model"), "the technology gives the transistors' models"),
    ".temp": "the verb's option --temp sets the temperature",
    **dict.fromkeys((".control", ".endc", ".save", ".probe", ".print"), "the verb says what is run and saved"),
}


class _Statement(NamedTuple):
    """A statement of a netlist: the number of its first line, its words, and its fields, name -> text of the value."""

    line: int
    words: tuple[str, ...]
    fields: Mapping[str, str]


@dataclass
class _Block:
    """A `.subckt` as it stands in a netlist, or the top level, whose name is empty."""

    name: str
    line: int
    ports: tuple[str, ...] = ()
    parameters: dict[str, str] = field(default_factory=dict[str, str])
    elements: list[_Statement] = field(default_factory=list[_Statement])


@dataclass(frozen=True)
class Netlist:
    """A netlist that was read.

    circuit: what it says; lines: (subcircuit as the netlist calls it, "" for the top level; name of an element with its
    letter, or "" for the subcircuit itself) -> its line; blocks: name of each subcircuit in `circuit` -> as the netlist
    calls it; values: the parameters with which it was made, as text; unused: subcircuits without an instance; run: its
    `.tran`, `.dc` or `.op`; measures: its `.meas`, in order; start, preset: (net, V) of its `.nodeset` and its `.ic`;
    reltol: relative accuracy of a step by its `.options`, None where it has none.
    """

    circuit: Circuit
    lines: Mapping[tuple[str, str], int]
    blocks: Mapping[str, str]
    values: Mapping[str, str]
    unused: tuple[str, ...] = ()
    run: Analysis | None = None
    measures: tuple[Measure, ...] = ()
    start: tuple[tuple[str, float], ...] = ()
    preset: tuple[tuple[str, float], ...] = ()
    reltol: float | None = None


def read_netlist(
    text: str,
    where: str,
    technology: Technology,
    given: Mapping[str, float] = {},
    tops: tuple[str, ...] = (),
) -> Netlist:
    """Read a netlist whose transistors are a technology's.

    where: the file, for messages; given: values of parameters of the top level, in place of those in the netlist; tops:
    subcircuits that are read although the netlist has no instance of them. Raises InputError that names the line, what
    stands there and what must.
    """
    return _Reader(text, where, technology, given).read(tops)


class _Reader:
    """A reader of one netlist: its blocks as they stand in the text, and the subcircuits made of them so far."""

    def __init__(self, text: str, where: str, technology: Technology, given: Mapping[str, float]) -> None:
        self.where, self.technology, self.measures = where, technology, list[_Statement]()
        self.starts = list[_Statement]()
        self.reltol: float | None = None
        self.blocks, self.top, self.run_texts = dict[str, _Block](), _Block("", 0), _Statement(0, (), {})
        self._sort(_statements(text, where))
        if unknown := sorted(given.keys() - self.top.parameters.keys()):
            known = listed(sorted(self.top.parameters)) if self.top.parameters else "none"
            raise InputError(f"{where} must have a .param {unknown[0]}, which is given a value; it has {known}")
        self.top.parameters |= {name: repr(value) for name, value in given.items()}
        self.parameters = Parameters(self.top.parameters)
        self.lines = {(name, ""): block.line for name, block in self.blocks.items()}
        self.made = dict[tuple[str, tuple[tuple[str, float], ...]], Subcircuit]()
        self.counts, self.variants, self.open = Counter[str](), Counter[str](), list[str]()
        self.run: Analysis | None = None

    def read(self, tops: tuple[str, ...]) -> Netlist:
        """Return the netlist with the subcircuits that its top level uses, and with those of `tops`."""
        if missing := next((name for name in tops if name not in self.blocks), None):
            raise InputError(f"{self.where} must have the subcircuit {missing}; it has {listed(sorted(self.blocks))}")
        if self.run_texts.words:
            self.run = self._analysis(self.run_texts)
        elements = self._elements(self.top, self.parameters)
        self._check_swept(elements)
        for name in tops:
            self._made(name, {}, 0)
        order = {name: place for place, name in enumerate(self.blocks)}
        found = sorted(self.made.items(), key=lambda one: order[one[0][0]])
        blocks = {one.name: name for (name, _), one in found}
        values = {one.name: " ".join(f"{name}={value:.6g}" for name, value in given) for (_, given), one in found}
        unused = tuple(name for name in self.blocks if name not in blocks.values())
        for name in unused:
            self._made(name, {}, self.blocks[name].line)  # what stands there must be understood, too
        try:
            circuit = Circuit(self.where, tuple(one for _, one in found), elements)
        except MappingError as error:
            raise InputError(str(error)) from None
        measures, start, preset = self._measures(circuit), self._set(circuit, ".nodeset"), self._set(circuit, ".ic")
        return Netlist(circuit, self.lines, blocks, values, unused, self.run, measures, start, preset, self.reltol)

    def refuse(self, line: int, problem: str) -> InputError:
        """Return the error for a line of the netlist."""
        return InputError(f"{self.where}: line {line}: {problem}")

    def _sort(self, statements: Iterator[_Statement]) -> None:
        """Sort the statements of the netlist into its blocks. Raises InputError for one that is not understood."""
        block = self.top
        for one in statements:
            word = one.words[0] if one.words else "="
            match word, one.words[1:]:
                case ".subckt", ():
                    raise self.refuse(one.line, ".subckt must have a name and its ports")
                case ".param", words if words or not one.fields:
                    raise self.refuse(one.line, ".param must have name=value, and an expression with blanks in quotes")
                case ".subckt", (name, *ports) if block is self.top:
                    block = self._block(one, name, [port for port in ports if port != "params:"])
                case ".subckt", (_, *_):
                    raise self.refuse(
                        one.line, f"the subcircuit {block.name} of line {block.line} must end with .ends before another"
                    )
                case ".ends", _ if block is self.top:
                    raise self.refuse(one.line, "there is no .subckt that .ends could end")
                case ".ends", names:
                    if (names and names != (block.name,)) or one.fields:
                        raise self.refuse(one.line, f".ends must stand alone, or with the name {block.name}")
                    block = self.top
                case ".param", _:
                    block.parameters |= self._parameters(one)
                case ".tran" | ".dc" | ".op" | ".meas" | ".nodeset" | ".ic" | ".options" | ".option", _ if (
                    block is not self.top
                ):
                    raise self.refuse(one.line, f"{word} must stand outside of the subcircuit {block.name}; move it")
                case ".tran" | ".dc" | ".op", _ if self.run_texts.words:
                    given = self.run_texts
                    raise self.refuse(
                        one.line,
                        f"{word} must be given once, as the only analysis; line {given.line} has {given.words[0]}",
                    )
                case ".tran" | ".dc" | ".op", _:
                    self.run_texts = one
                case ".meas", (_,):
                    self.measures.append(one)
                case ".options" | ".option", words:
                    self.reltol = self._reltol(one, words)
                case ".nodeset" | ".ic", (_,):
                    self.starts.append(one)
                case ".end", ():
                    break
                case _ if word[0] in "mnxcrvi":
                    block.elements.append(one)
                case _:
                    raise self.refuse(one.line, _not_understood(word))
        if block is not self.top:
            raise self.refuse(block.line, f"the subcircuit {block.name} must end with .ends")

    def _reltol(self, one: _Statement, words: tuple[str, ...]) -> float:
        """Return the accuracy that `.options reltol=` states, the only option that is read."""
        text = one.fields.get("reltol", "")
        if words or set(one.fields) != {"reltol"} or self.reltol is not None:
            raise self.refuse(
                one.line, ".options must have reltol=VALUE alone, once, as cosim sets all else; correct it"
            )
        try:
            value = Parameters({}).evaluate(text)
            _RELTOL.check("reltol", value)
        except InputError as error:
            raise self.refuse(one.line, str(error)) from None
        return value

    def _block(self, one: _Statement, name: str, ports: list[str]) -> _Block:
        if name in self.blocks:
            raise self.refuse(one.line, f"{name} is defined twice, also in line {self.blocks[name].line}")
        if self._polarity(name) is not None or name in _MASTERS:
            raise self.refuse(one.line, f"{name} must have another name, because a simulator has a device of this one")
        self._check(one, name, *ports)
        if twice := next((port for at, port in enumerate(ports) if port in ports[:at]), None):
            raise self.refuse(one.line, f"the ports of {name} must differ, not two of {twice}")
        self.blocks[name] = found = _Block(name, one.line, tuple(map(_net, ports)), self._parameters(one))
        return found

    def _parameters(self, one: _Statement) -> dict[str, str]:
        """Return the parameters that a statement sets. Raises InputError for a name that no expression can have."""
        if wrong := next((name for name in one.fields if keyword.iskeyword(name) or not name.isidentifier()), None):
            raise self.refuse(one.line, f"a parameter cannot have the name {shown(wrong)}; rename it")
        return dict(one.fields)

    def _check(self, one: _Statement, *names: str) -> None:
        """Raise InputError for names that a simulator could take for something else."""
        if wrong := next((name for name in names if not _NAME.fullmatch(name)), None):
            raise self.refuse(
                one.line, f"a name must be of letters, digits and _, at most 200, not {shown(wrong)}; rename it"
            )

    def _made(self, name: str, values: Mapping[str, float], line: int) -> Subcircuit:
        """Return the subcircuit that a block makes with these values of its parameters."""
        if name in self.open:
            raise self.refuse(line, f"{name} must not contain itself: {' in '.join((name, *self.open[::-1]))}")
        block = self.blocks[name]
        texts = {field: repr(value) for field, value in values.items()}
        scope, usual = (
            Parameters(parameters, self.parameters) for parameters in (block.parameters | texts, block.parameters)
        )
        resolved, own = (tuple((field, one[field]) for field in sorted(block.parameters)) for one in (scope, usual))
        key = name, resolved
        if key not in self.made:
            if len(self.open) >= _DEEPEST or len(self.made) >= _VARIANTS:
                raise self.refuse(
                    line,
                    f"there may be at most {_VARIANTS} subcircuits with other values of parameters, {_DEEPEST} deep",
                )
            self.open.append(name)
            elements = self._elements(block, scope)
            self.open.pop()
            try:
                self.made[key] = Subcircuit(name if resolved == own else self._variant(name), block.ports, elements)
            except MappingError as error:
                raise self.refuse(block.line, str(error)) from None
            self._count(self.made[key], block.line)
        return self.made[key]

    def _variant(self, name: str) -> str:
        """Return a name for a subcircuit with other values of its parameters that no other subcircuit has."""
        while True:
            self.variants[name] += 1
            if (found := f"{name}_{self.variants[name] + 1}") not in self.blocks:
                return found

    def _count(self, block: Subcircuit, line: int) -> None:
        """Count the elements of a subcircuit when it is flat. Raises InputError for too many."""
        self.counts[block.name] = count = sum(
            1 + (self.counts[one.subcircuit] if isinstance(one, Instance) else 0) for one in block.elements
        )
        if count > _MOST:
            raise self.refuse(line, f"{block.name} has more than {_MOST} elements, with those of its instances")

    def _elements(self, block: _Block, values: Parameters) -> tuple[Element, ...]:
        found: list[Element] = []
        for one in block.elements:
            try:
                element = self._element(one, values)
            except InputError as error:
                start = f"{self.where}: line "
                raise error if str(error).startswith(start) else self.refuse(one.line, str(error)) from None
            found.append(element)
            name = element.letter + element.name
            if (before := self.lines.setdefault((block.name, name), one.line)) != one.line:
                raise self.refuse(one.line, f"there must not be two of {name}; the other one is in line {before}")
        return tuple(found)

    def _element(self, one: _Statement, values: Parameters) -> Element:
        """Return the element of a statement. Raises InputError, which need not name the line yet."""
        letter, name, words = one.words[0][0], one.words[0][1:], one.words[1:]
        if not name:
            raise InputError(f"an element must have a name behind its letter {letter}")
        self._check(one, name)
        match letter:
            case "m" | "n":
                wanted, known = "n" if model_family(self.technology).osdi else "m", self.technology.name
                if letter != wanted:
                    raise InputError(
                        f"a transistor of {known} must have a name that begins with {wanted}, not {letter}"
                    )
                return self._mos(name, one, values, 1.0)
            case "x" if words and self._polarity(words[-1]) is not None:
                if not is_subcircuit(self.technology, "n"):
                    raise InputError(f"{words[-1]} must be a transistor with a name that begins with m, not x")
                return self._mos(name.removeprefix("m") or name, one, values, self.technology.library.length_unit)
            case "x":
                return self._instance(name, one, values)
            case "c" | "r":
                return self._passive(letter, name, one, values)
            case _:
                a, b = self._nets(one, words[:2], 2)
                return _bounded(Source(name, "v" if letter == "v" else "i", a, b, self._value(one, words[2:], values)))

    def _nets(self, one: _Statement, words: tuple[str, ...], count: int) -> tuple[str, ...]:
        if len(words) != count:
            raise InputError(f"{one.words[0]} must have {count} nets, not {len(words)}")
        self._check(one, *words)
        return tuple(map(_net, words))

    def _polarity(self, model: str) -> Polarity | None:
        """Return the polarity of the technology's device that a model's name means, None for another name."""
        for polarity in POLARITIES:
            if re.fullmatch(re.escape(self.technology.device(polarity).name.lower()) + _CARD, model):
                return polarity
        return None

    def _mos(self, name: str, one: _Statement, values: Parameters, unit: float) -> Mos:
        model, fields = one.words[-1], dict(one.fields)
        drain, gate, source, bulk = self._nets(one, one.words[1:-1], 4)
        if (polarity := self._polarity(model)) is None:
            known = " and ".join(self.technology.device(each).name for each in POLARITIES)
            raise InputError(f"the model must be a transistor of {self.technology.name}, {known}, not {shown(model)}")
        numbers = {field: values.evaluate(text) for field, text in fields.items()}
        sides = {side: unit * numbers.pop(side, 0.0) for side in ("w", "l")}
        for side, metre in sides.items():
            SIDE.check(side, metre)
        m = numbers.pop("m", 1.0)
        PARALLEL.check("m", m)
        if abs(m - round(m)) > 1e-9 * m:
            raise InputError(f"m must be a whole number, not {m:g}")
        if numbers.pop("nf", 1.0) != 1.0:
            raise InputError("nf must be 1, one finger; give m for devices in parallel")
        self._check_diffusion(sides["w"], numbers, unit)
        if numbers:
            raise InputError(f"a transistor has w, l, m and nf, not {next(iter(numbers))}; leave it out")
        device_cards(self.technology, [(polarity, sides["w"], sides["l"])])
        return Mos(name, drain, gate, source, bulk, polarity, sides["w"], sides["l"], round(m))

    def _check_diffusion(self, w: float, numbers: dict[str, float], unit: float) -> None:
        """Take areas and rims of diffusions out of a transistor's fields. Raises InputError for other than cosim's."""
        diffusion = self.technology.library.diffusion
        own = (w * diffusion / unit**2, 2 * (w + diffusion) / unit) if diffusion else (0.0, 0.0)
        for name in _DIFFUSION:
            value, wanted = numbers.pop(name, None), own[name[0] == "p"]
            if value is not None and abs(value - wanted) > 1e-6 * wanted:
                raise InputError(f"{name} must be {wanted:g}, which follows from w, not {value:g}; leave it out")

    def _instance(self, name: str, one: _Statement, values: Parameters) -> Instance:
        *nets, called = one.words[1:] or ("",)
        if (block := self.blocks.get(called)) is None:
            raise InputError(
                f"x{name} must name a subcircuit of this netlist, or a transistor of {self.technology.name}, not "
                f"{shown(called)}"
            )
        if unknown := sorted(one.fields.keys() - block.parameters.keys()):
            raise InputError(
                f"{called} must have the parameter {unknown[0]}; it has {listed(sorted(block.parameters))}"
            )
        if len(nets) != len(block.ports):
            ports = " ".join(block.ports)
            raise InputError(f"x{name} must have {len(block.ports)} nets, for {called}'s {ports}, not {len(nets)}")
        given = {field: values.evaluate(text) for field, text in one.fields.items()}
        ends = self._nets(one, tuple(nets), len(nets))
        return Instance(name, ends, self._made(called, given, one.line).name)

    def _passive(self, letter: str, name: str, one: _Statement, values: Parameters) -> Capacitor | Resistor:
        fields, words = dict(one.fields), one.words[1:]
        text = fields.pop(letter, None)
        if text is None and len(words) == 3:
            text, words = words[2], words[:2]
        a, b = self._nets(one, words, 2)
        if text is None or fields:
            raise InputError(f"{letter}{name} must have two nets and one value, and nothing else")
        value = values.evaluate(text)
        if letter == "c":
            _FARAD.check("the capacitance", value)
            return Capacitor(name, a, b, value)
        _OHM.check("the resistance", value)
        return Resistor(name, a, b, value)

    def _value(
        self, one: _Statement, words: tuple[str, ...], values: Parameters
    ) -> float | tuple[tuple[float, float], ...]:
        """Return the value of a source: a number, or points (s, value)."""
        if one.fields:
            raise InputError(f"a source has no {next(iter(one.fields))}; write its value without =")
        if words and words[0] == "dc":
            words = words[1:]
            if len(words) > 1 and words[1] in ("pwl", "pulse"):
                given, words = words[0], words[1:]  # in a transient the waveform counts, elsewhere the number
                if not isinstance(self.run, Tran | None):
                    self._value(one, words, values)
                    return values.evaluate(given)
        match words:
            case (number,):
                return values.evaluate(number)
            case "pwl", *texts if len(texts) >= 2:
                points = self._points([values.evaluate(text) for text in texts])
            case "pulse", *texts if len(texts) == 7:
                points = self._pulses([values.evaluate(text) for text in texts])
            case _:
                raise InputError(
                    f"a source must have a number, pwl with pairs of s and value, or pulse with all seven numbers, not "
                    f"{shown(' '.join(words))}"
                )
        return points if isinstance(self.run, Tran | None) else points[0][1]

    def _points(self, numbers: list[float]) -> tuple[tuple[float, float], ...]:
        times = numbers[::2]
        rising = all(a < b for a, b in pairwise(times))
        if len(numbers) % 2 or not rising or times[0] < 0 or len(times) > _POINTS:
            raise InputError(f"pwl must have pairs of a time and a value, at most {_POINTS}, at rising times from 0 on")
        begin = () if times[0] == 0.0 else ((0.0, numbers[1]),)
        return (*begin, *zip(times, numbers[1::2], strict=True))

    def _pulses(self, numbers: list[float]) -> tuple[tuple[float, float], ...]:
        """Return the points of SPICE's pulse, from its seven numbers, up to the end of the netlist's `.tran`."""
        low, high, delay, rise, fall, width, period = numbers
        if self.run is None:
            raise InputError("a pulse needs the length of the run: give the netlist a .tran, a .dc or an .op")
        if delay < 0 or min(rise, fall) <= 0 or width < 0 or rise + width + fall > period:
            raise InputError("a pulse must have edges longer than 0 s, and rise, width and fall within its period")
        end = self.run.end if isinstance(self.run, Tran) else 0.0
        count = int(max(end - delay, 0.0) / period) + 1
        if 4 * count > _POINTS:
            raise InputError(f"a pulse must have at most {_POINTS // 4} periods until the end of .tran, not {count}")
        shape = ((0.0, low), (rise, high), (rise + width, high), (rise + width + fall, low))
        points = dict[float, float]({0.0: low})
        for k in range(count):
            points |= {delay + k * period + time: value for time, value in shape}
        return tuple(sorted(points.items()))

    def _measures(self, circuit: Circuit) -> tuple[Measure, ...]:
        """Return the measures of the netlist, whose signals must be in the circuit."""
        if not self.measures:
            return ()
        if self.run is None:
            raise self.refuse(self.measures[0].line, "a measure needs a run: give the netlist a .tran, a .dc or an .op")
        found, probes = dict[str, Measure](), signals_of(circuit)
        for one in self.measures:
            try:
                measure = parse_measure(one.words[1], self.parameters, tuple(found), self.run, probes)
            except InputError as error:
                raise self.refuse(one.line, str(error)) from None
            found[measure.name] = measure
        return tuple(found.values())

    def _set(self, circuit: Circuit, word: str) -> tuple[tuple[str, float], ...]:
        """Return (net, V) of the netlist's `.nodeset` or `.ic`; the nets must be in the circuit."""
        found, probes = dict[str, float](), signals_of(circuit)
        for one in (one for one in self.starts if one.words[0] == word):
            if word == ".ic" and not isinstance(self.run, Tran):
                raise self.refuse(
                    one.line, ".ic is of a transient, so there must be a .tran; .nodeset is of all analyses"
                )
            text, at = one.words[1], 0
            while match := _SET.match(text, at):
                net, at = _net(match["net"]), match.end()
                if net == GROUND or net in found or Voltage(net) not in probes:
                    raise self.refuse(one.line, f"{word} must name a net of the circuit, once, not {shown(net)}")
                try:
                    found[net] = self.parameters.evaluate(match["volts"])
                    _SOURCE.check(f"v({net})", found[net])
                except InputError as error:
                    raise self.refuse(one.line, str(error)) from None
            if at < len(text):
                raise self.refuse(one.line, f"{word} must have v(net)=value, not {shown(text[at:])}")
        return tuple(found.items())

    def _analysis(self, one: _Statement) -> Analysis:
        """Return the analysis that a statement asks for."""
        if one.words[0] == ".op":
            if one.words[1:] or one.fields:
                raise self.refuse(one.line, ".op must stand alone; remove what follows it")
            return Op()
        named = one.words[0] == ".dc"
        try:
            numbers = [self.parameters.evaluate(word) for word in one.words[1 + named :]]
        except InputError as error:
            raise self.refuse(one.line, str(error)) from None
        return self._dc(one, numbers) if named else self._tran(one, numbers)

    def _dc(self, one: _Statement, numbers: list[float]) -> Dc:
        """Return a sweep; its last value is the last whole step, as in ngspice."""
        source = one.words[1] if one.words[1:] else ""
        if one.fields or len(numbers) != 3 or source[:1] not in ("v", "i"):
            raise self.refuse(one.line, ".dc must have one source, v or i, and start, stop and step")
        start, stop, step = numbers
        try:
            for value in (start, stop):
                _SOURCE.check("the value of a source", value)
        except InputError as error:
            raise self.refuse(one.line, str(error)) from None
        if (stop - start) * step <= 0 or abs(step) < _LEAST_STEP or abs(step) > abs(stop - start) * (1 + 1e-9):
            raise self.refuse(one.line, f".dc must have a step that leads from start to stop, at least {_LEAST_STEP:g}")
        if (count := int((stop - start) / step * (1 + 1e-9))) > _POINTS:
            raise self.refuse(one.line, f".dc must have at most {_POINTS} points, not {count}")
        kind = "v" if source[0] == "v" else "i"
        return Dc(kind, source[1:], start, start + count * step, step)

    def _check_swept(self, elements: tuple[Element, ...]) -> None:
        """Raise InputError where the netlist sweeps a source that its top level does not have."""
        if isinstance(run := self.run, Dc):
            sources = [one.letter + one.name for one in elements if isinstance(one, Source)]
            if run.kind + run.source not in sources:
                raise self.refuse(
                    self.run_texts.line,
                    f".dc must sweep a source of the top level, not {run.kind}{run.source}; it has {listed(sources)}",
                )

    def _tran(self, one: _Statement, numbers: list[float]) -> Tran:
        """Return the analysis of a `.tran`: longest step and end."""
        if one.fields or len(numbers) not in (2, 4) or not 0 < numbers[0] <= numbers[1] or any(numbers[2:3]):
            raise self.refuse(one.line, ".tran must have a step and an end, 0 < step <= end, and may have 0 and a step")
        return Tran(min(numbers[0], *numbers[3:], numbers[1]), numbers[1])


def _net(name: str) -> str:
    return GROUND if name == "gnd" else name


def _bounded(source: Source) -> Source:
    """Return a source if its values are some that a circuit can have. Raises InputError for others."""
    values = [value for _, value in source.value] if isinstance(source.value, tuple) else [source.value]
    for value in values:
        _SOURCE.check("the value of a source", value)
    return source


def _not_understood(word: str) -> str:
    if word in _ELSEWHERE:
        return f"{word} must be left out: {_ELSEWHERE[word]}"
    return f"{shown(word)} is not understood; {_REPAIR}, and a comment begins with *"


def _statements(text: str, where: str) -> Iterator[_Statement]:
    """Yield the statements of a netlist in lower case, `+` continuations joined, comments left out."""
    joined: list[tuple[int, list[str]]] = []
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text.lower()), start=1):
        line = re.split(r";|(?:^|\s)\$", raw, maxsplit=1)[0].strip()
        if not line or line.startswith("*"):
            continue
        if not line.startswith("+"):
            joined.append((number, [line]))
        elif joined:
            joined[-1][1].append(line[1:])
        else:
            raise InputError(f"{where}: line {number}: a line that begins with + must follow another one")
    for number, parts in joined:
        line = re.sub(r"\s*=\s*", "=", " ".join(parts))
        if measure := _MEASURE.match(line):
            yield _Statement(number, (".meas", line[measure.end() :]), {})
            continue
        if started := _STARTED.match(line):
            yield _Statement(number, (started[1], line[started.end() :].strip()), {})
            continue
        found = list(_WORD.finditer(line))
        ends = [0, *(one.end() for one in found)]
        starts = [*(one.start() for one in found), len(line)]
        if wrong := next((at for at, stop in zip(ends, starts, strict=True) if not _blank(line[at:stop])), None):
            raise InputError(f"{where}: line {number}: {shown(line[wrong:])} is not understood")
        if random := _RANDOM.search(line):
            raise InputError(
                f"{where}: line {number}: {random[1]} is not read, because the verb draws chips; write the mean"
            )
        words = [one[0] for one in found]
        pairs = [word.split("=", 1) for word in words if "=" in word and word[0] not in "'{"]
        if twice := next((name for at, (name, _) in enumerate(pairs) if name in dict(pairs[:at])), None):
            raise InputError(f"{where}: line {number}: {twice} must be given once, not twice")
        yield _Statement(number, tuple(word for word in words if "=" not in word or word[0] in "'{"), dict(pairs))


def _blank(text: str) -> bool:
    return _BETWEEN.fullmatch(text) is not None
