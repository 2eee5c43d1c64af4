"""Measures of an analysis as a netlist states them, `.meas tran NAME ...`, and their values from waveforms.

    find v(out) at=1m                                  a signal at a time
    find v(out,in) when v(in)=0.5 rise=2               a signal when another one crosses a level
    when v(a)=v(b) fall=last                           the time at which it does
    trig v(a) val=0.5 rise=1 targ v(b) val=0.5 fall=1  the time from one crossing to another
    avg v(out) from=1m to=2m                           also min, max, pp, rms, integ; min_at, max_at: the time of it
    param='delay/2'                                    an expression of earlier measures and of parameters

A signal is v(net), v(net,net), also written par('v(net)-v(net)'), or i(voltage source). A crossing is counted by
`rise=`, `fall=` or `cross=`, a number or `last`, from `td=` on. Between two time points every signal is a straight
line; least and greatest values are those of time points. Definitions are those of ngspice (manual, chapter 11.4), which
the tests compare with. An engine whose steps are long brings an `Interpolation` of its own.

`.meas dc` has the same measures over the swept value in place of time, but no `td=`. They follow the sweep: where it
falls, what rises with the swept value is a fall, and an integral is negative, while from= stays below to=. What ngspice
has no value for is refused. `.meas op` has `find SIGNAL` and `param=`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import InputError
from cosim.base.text import listed, shown
from cosim.circuit.bench import Analysis, Current, Dc, Op, Probe, Tran, Voltage
from cosim.circuit.elements import Capacitor, Circuit, Instance, Mos, Resistor, Source
from cosim.technology.parameters import Parameters

Array = NDArray[np.float64]
Probes = Mapping[Probe, Array]
Values = Callable[[str], float]
_TOKEN = re.compile(r"par\s*\('[^']*'\)|'[^']*'|\{[^}]*\}|[vi]\s*\([^()]*\)|=|[^\s=,]+")
_SIGNAL = re.compile(r"(?P<kind>[vi])\s*\(\s*(?P<first>[a-z0-9_.]+)\s*(?:,\s*(?P<second>[a-z0-9_.]+)\s*)?\)")
_DIFFERENCE = re.compile(r"par\s*\('\s*v\(([a-z0-9_.]+)\)\s*-\s*v\(([a-z0-9_.]+)\)\s*'\)")
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,99}")
_USED = re.compile(r"(?<![\w.])[a-z_]\w*\b(?!\s*\()")
_LAST = 0  # the number of the last crossing
_MOST = 1_000_000
_SLACK = 1e-6  # of a sweep's step, by which its points may miss a value: ngspice adds up steps
_PROBED = (0.731, 1.377, 2.913)  # values of measures with which a formula is tried
_KINDS = (
    "find SIGNAL at=TIME, find SIGNAL when SIGNAL=LEVEL, when SIGNAL=LEVEL, trig ... targ ..., avg, min, max, pp, rms, "
    "integ, min_at or max_at SIGNAL from= to=, or param='EXPRESSION'"
)

Count = Literal["rise", "fall", "cross"]
_COUNTS: tuple[Count, ...] = ("rise", "fall", "cross")
Extract = Literal["avg", "min", "max", "pp", "rms", "integ", "min_at", "max_at"]
_EXTRACTS: tuple[Extract, ...] = ("avg", "min", "max", "pp", "rms", "integ", "min_at", "max_at")


@dataclass(frozen=True)
class Signal:
    """A signal of a circuit: the voltage of a net, or between two, V, or the current through a voltage source, A."""

    plus: Probe
    minus: Probe | None = None

    @property
    def probes(self) -> tuple[Probe, ...]:
        """Return the probes that the signal is made of."""
        return (self.plus,) if self.minus is None else (self.plus, self.minus)

    def of(self, waves: Probes) -> Array:
        """Return the signal at the waveforms' time points, (points,)."""
        return waves[self.plus] if self.minus is None else waves[self.plus] - waves[self.minus]


class Interpolation(Protocol):
    """A rule by which measures are read from the points of a waveform."""

    def value(self, time: Array, signal: Array, at: float) -> float:
        """Return the value of a signal at a time; time: (points,), rising."""
        ...

    def crossing(self, time: Array, distance: Array, k: int) -> float:
        """Return when a signal passes its level between the points k and k + 1; distance: from the level, (points,)."""
        ...

    def extreme(self, time: Array, signal: Array, side: int) -> tuple[float, float]:
        """Return (when, value) of the greatest value of a signal for side 1, of the least one for -1."""
        ...

    def integral(self, x: Array, y: Array) -> float:
        """Return the integral of y over x."""
        ...


@dataclass(frozen=True)
class LinearInterpolation:
    """Signals as straight lines between the points of a waveform, as ngspice reads them."""

    def value(self, time: Array, signal: Array, at: float) -> float:
        """Return the value of a signal at a time; time: (points,), rising."""
        return float(np.interp(at, time, signal))

    def crossing(self, time: Array, distance: Array, k: int) -> float:
        """Return when a signal passes its level between the points k and k + 1; distance: from the level, (points,)."""
        (before, behind), (low, high) = distance[k : k + 2].tolist(), time[k : k + 2].tolist()
        return low + before / (before - behind) * (high - low)

    def extreme(self, time: Array, signal: Array, side: int) -> tuple[float, float]:
        """Return (when, value) of the greatest value at a point of a signal for side 1, of the least one for -1."""
        k = int((side * signal).argmax())
        return float(time[k]), float(signal[k])

    def integral(self, x: Array, y: Array) -> float:
        """Return the integral of y over x by the trapezoidal rule."""
        return float(np.trapezoid(y, x))


LINEAR = LinearInterpolation()


@dataclass(frozen=True)
class Crossing:
    """The event that a signal crosses a level, which is a number or another signal.

    count, number: which crossing, such as the second rise, from 1, or 0 for the last one; after: s, before which
    nothing counts, minus infinity in a sweep.
    """

    signal: Signal
    level: float | Signal
    count: Count = "cross"
    number: int = 1
    after: float = 0.0

    @property
    def probes(self) -> tuple[Probe, ...]:
        """Return the probes whose waveforms decide when the crossing happens."""
        return self.signal.probes + (self.level.probes if isinstance(self.level, Signal) else ())

    def moment(self, time: Array, waves: Probes, interpolation: Interpolation = LINEAR) -> float:
        """Return when the crossing happens, s, nan if it never does; time: of the points, (points,), s."""
        level = self.level.of(waves) if isinstance(self.level, Signal) else self.level
        begin = int(time.searchsorted(self.after))
        distance, time = (self.signal.of(waves) - level)[begin:], time[begin:]
        places = self._crossed(distance).nonzero()[0]
        if len(places) < max(self.number, 1):
            return np.nan
        return interpolation.crossing(time, distance, int(places[self.number - 1]))

    def _crossed(self, distance: Array) -> NDArray[np.bool_]:
        """Return for each step whether the signal crosses its level in it.

        A signal that reaches its level at the end of a step crosses it in that step.
        """
        if self.count == "cross":
            below, above = distance < 0, distance > 0
            return (below[:-1] > below[1:]) | (above[:-1] > above[1:])
        there = distance < 0 if self.count == "rise" else distance > 0
        return there[:-1] > there[1:]


@dataclass(frozen=True)
class Find:
    """A measure: the value of a signal at a time, s, or when a crossing happens; nan if it never does."""

    name: str
    signal: Signal
    when: float | Crossing

    @property
    def probes(self) -> tuple[Probe, ...]:
        """Return the probes that the measure reads."""
        return self.signal.probes + (self.when.probes if isinstance(self.when, Crossing) else ())

    def value(self, time: Array, waves: Probes, interpolation: Interpolation = LINEAR) -> float:
        """Return the measure's value; time: (points,), s, or the swept values, V or A."""
        at = self.when.moment(time, waves, interpolation) if isinstance(self.when, Crossing) else self.when
        time, signal = _rising(time, self.signal.of(waves))
        slack = 1e-9 * float(time[-1] - time[0])
        if not time[0] - slack <= at <= time[-1] + slack:
            return np.nan
        return interpolation.value(time, signal, at)


@dataclass(frozen=True)
class When:
    """A measure: the time of a crossing, s, since the beginning, or since another crossing; nan where one is missing.

    since: a crossing, or a time, s.
    """

    name: str
    crossing: Crossing
    since: float | Crossing = 0.0

    @property
    def probes(self) -> tuple[Probe, ...]:
        """Return the probes that the measure reads."""
        return self.crossing.probes + (self.since.probes if isinstance(self.since, Crossing) else ())

    def value(self, time: Array, waves: Probes, interpolation: Interpolation = LINEAR) -> float:
        """Return the measure's value; time: (points,), s."""
        since = self.since.moment(time, waves, interpolation) if isinstance(self.since, Crossing) else self.since
        return self.crossing.moment(time, waves, interpolation) - since


@dataclass(frozen=True)
class Window:
    """A measure: one number of a signal between two times, s, such as its mean; nan if no time point lies there.

    In a sweep start and end are values of its source, and infinite where the measure is of the whole sweep.
    """

    name: str
    extract: Extract
    signal: Signal
    start: float
    end: float

    @property
    def probes(self) -> tuple[Probe, ...]:
        """Return the probes that the measure reads."""
        return self.signal.probes

    def value(self, time: Array, waves: Probes, interpolation: Interpolation = LINEAR) -> float:
        """Return the measure's value; time: (points,), s, or swept values."""
        falling = time[-1] < time[0]
        time, signal = _rising(time, self.signal.of(waves))
        start = float(time[0]) if np.isinf(self.start) else self.start
        end = min(self.end, float(time[-1]))
        inside = (time >= start) & (time <= end)
        if not inside.any() or end <= start:
            return np.nan
        if self.extract in ("min", "max", "pp", "min_at", "max_at"):
            (low_at, low), (high_at, high) = (
                interpolation.extreme(time[inside], signal[inside], side) for side in (-1, 1)
            )
            found = {"min": low, "max": high, "pp": high - low, "min_at": low_at, "max_at": high_at}
            return found[self.extract]
        x = np.unique(np.concatenate([[start], time[inside], [end]]))
        y = np.interp(x, time, signal)
        y[0], y[-1] = (interpolation.value(time, signal, one) for one in (start, end))
        if self.extract == "rms":
            return (max(interpolation.integral(x, y**2), 0.0) / (end - start)) ** 0.5
        whole = interpolation.integral(x, y)
        return (-whole if falling else whole) if self.extract == "integ" else whole / (end - start)


def _rising(axis: Array, signal: Array) -> tuple[Array, Array]:
    """Return an analysis' axis and a signal in the order in which the axis rises."""
    return (axis, signal) if axis[-1] >= axis[0] else (axis[::-1], signal[::-1])


@dataclass(frozen=True)
class Formula:
    """A measure: an expression of measures before it and of parameters.

    text: the expression; parameters: (name, value) of the netlist's parameters that it uses.
    """

    name: str
    text: str
    parameters: tuple[tuple[str, float], ...] = ()

    @property
    def probes(self) -> tuple[Probe, ...]:
        """Return no probes: a formula reads measures only."""
        return ()

    def value(self, measured: Mapping[str, float]) -> float:
        """Return the expression's value with these values of measures; nan where one is missing, or it has none."""
        known = Parameters({})
        known.values |= dict(self.parameters) | {name: value for name, value in measured.items() if isfinite(value)}
        try:
            return known.evaluate(self.text)
        except InputError:
            return np.nan


Measure = Find | When | Window | Formula


def evaluate_measures(
    measures: Sequence[Measure], time: Array, waves: Probes, interpolation: Interpolation = LINEAR
) -> dict[str, float]:
    """Return the value of each measure by its name, nan where it has none, such as a crossing that never is.

    time: of a transient's points, (points,), s, or a sweep's values, V or A, or empty for an operating point; waves:
    probe -> (points,), V or A; interpolation: how signals run between points.
    """
    found: dict[str, float] = {}
    time = time if len(time) else np.zeros(1)
    for one in measures:
        found[one.name] = one.value(found) if isinstance(one, Formula) else one.value(time, waves, interpolation)
    return found


def probes_of(measures: Sequence[Measure]) -> tuple[Probe, ...]:
    """Return the probes that measures read, each once, in order of their first use."""
    return tuple(dict.fromkeys(probe for one in measures for probe in one.probes))


def signals_of(circuit: Circuit) -> frozenset[Probe]:
    """Return what measures may read of a circuit: voltages of nets, and currents of voltage sources at its top level.

    The net `a` in an instance `xcell` is `xcell.a`.
    """
    nets: set[str] = set()
    for element in circuit.flat().elements:
        match element:
            case Mos(_, drain, gate, source, bulk):
                nets |= {drain, gate, source, bulk}
            case Capacitor(_, a, b) | Resistor(_, a, b) | Source(_, _, a, b):
                nets |= {a, b}
            case Instance():  # a flat circuit has none
                pass
    currents = (Current(one.name) for one in circuit.elements if isinstance(one, Source) and one.kind == "v")
    return frozenset((*map(Voltage, nets), *currents))


def parse_measure(
    text: str, parameters: Parameters, before: Sequence[str], run: Analysis, probes: frozenset[Probe]
) -> Measure:
    """Return the measure that a netlist states behind `.meas`, in lower case, such as `tran t1 when v(a)=0.5 rise=1`.

    parameters: of the netlist's top level; before: names of earlier measures; run: the netlist's analysis; probes:
    those that the circuit has. Raises InputError, which does not name the line, for what is not understood.
    """
    return _Parser(text, parameters, before, run, probes).parse()


def format_measures(measures: Sequence[Measure], run: Analysis) -> str:
    """Return measures as statements of a netlist, with the parameters that their formulas use, for ngspice.

    run: the analysis that they measure. ngspice has none of an operating point: give the sweep of `cosim.circuit.bench`
    that `pointed` makes of it. `parse_measure` reads each `.meas tran` again to the same measure.
    """
    used = {name: value for one in measures if isinstance(one, Formula) for name, value in one.parameters}
    lines = [f".param {name}={value:.12g}" for name, value in used.items()]
    return "".join(f"{line}\n" for line in (*lines, *(f".meas {_word(run)} {_statement(one)}" for one in measures)))


def _word(run: Analysis) -> str:
    """Return how a `.meas` calls an analysis."""
    match run:
        case Tran():
            return "tran"
        case Dc():
            return "dc"
        case Op():
            return "op"


def _statement(measure: Measure) -> str:
    match measure:
        case Find(name, signal, Crossing() as when):
            return f"{name} find {_written(signal)} when {_event(when)}"
        case Find(name, signal, at):
            return f"{name} find {_written(signal)} at={at:.12g}"
        case When(name, crossing, 0.0):
            return f"{name} when {_event(crossing)}"
        case When(name, crossing, since):
            start = _event(since, " val") if isinstance(since, Crossing) else f"at={since:.12g}"
            return f"{name} trig {start} targ {_event(crossing, ' val')}"
        case Window(name, extract, signal, start, end):
            window = f" from={start:.12g} to={end:.12g}" if np.isfinite(end) else ""
            return f"{name} {extract} {_written(signal)}{window}"
        case Formula(name, text):
            return f"{name} param='{text}'"


def _written(signal: Signal) -> str:
    match signal.plus, signal.minus:
        case Current(source), _:
            return f"i(v{source})"
        case Voltage(net), Voltage(other):
            return f"par('v({net})-v({other})')"
        case Voltage(net), _:
            return f"v({net})"
        case _:
            raise AssertionError(signal)


def _event(crossing: Crossing, between: str = "") -> str:
    level = _written(crossing.level) if isinstance(crossing.level, Signal) else f"{crossing.level:.12g}"
    after = f" td={crossing.after:.12g}" if crossing.after > 0 else ""
    number = "last" if crossing.number == _LAST else crossing.number
    return f"{_written(crossing.signal)}{between}={level}{after} {crossing.count}={number}"


class _Parser:
    """A parser of one `.meas`: the words that are not read yet, and what they may name."""

    def __init__(
        self, text: str, parameters: Parameters, before: Sequence[str], run: Analysis, probes: frozenset[Probe]
    ) -> None:
        self.words = _TOKEN.findall(text)
        self.parameters, self.before, self.run, self.probes = parameters, before, run, probes
        match run:
            case Tran(_, end):
                self.low, self.high, self.axis = 0.0, end, f"0 to {end:g} s"
            case Dc(_, _, start, stop):
                self.low, self.high = min(start, stop), max(start, stop)
                self.axis = f"{self.low:g} to {self.high:g}"
            case Op():
                self.low, self.high, self.axis = 0.0, 0.0, ""

    def parse(self) -> Measure:
        if (kind := self.take()) != (own := _word(self.run)):
            raise InputError(
                f"a measure must begin with .meas {own}, because the netlist's analysis is .{own}, not .meas {kind}"
            )
        name = self.take()
        if not _NAME.fullmatch(name):
            raise InputError(f"a measure's name must be of letters, digits and _, not {shown(name)}; rename it")
        if name in self.before or name in self.parameters.texts:
            raise InputError(f"there must not be two of {name}, which is a measure or a parameter; rename this one")
        found = self._measure(name, self.take())
        if self.words:
            raise InputError(f"{shown(self.words[0])} is not understood behind the measure {name}; leave it out")
        return found

    def take(self) -> str:
        """Take the next word, "" at the end."""
        return self.words.pop(0) if self.words else ""

    def _measure(self, name: str, kind: str) -> Measure:
        match kind:
            case "param":
                return self._formula(name)
            case "find" if isinstance(self.run, Op):
                return Find(name, self._signal(), 0.0)
            case _ if isinstance(self.run, Op):
                raise InputError(f"an operating point has find SIGNAL and param='EXPRESSION', not {shown(kind)}")
            case "find":
                signal, word = self._signal(), self.take()
                if word == "at":
                    return Find(name, signal, self._inside(self._time("at")))
                if word != "when":
                    raise InputError(f"find must be followed by a signal and at= or when, not {shown(word)}")
                return Find(name, signal, self._crossing())
            case "when":
                return When(name, self._crossing())
            case "trig":
                since = self._edge()
                if (word := self.take()) != "targ":
                    raise InputError(f"trig must be followed by targ, not {shown(word)}")
                target = self._edge()
                if not isinstance(target, Crossing):
                    raise InputError("targ must be a signal with val=, not a time")
                return When(name, target, since)
            case _ if kind in _EXTRACTS:
                return self._window(name, kind)
            case _:
                raise InputError(f"a measure must be {_KINDS}, not {shown(kind)}")

    def _window(self, name: str, kind: Extract) -> Window:
        signal = self._signal()
        fields = dict(self._fields(("from", "to")))
        start, end = (
            self._number(fields[key]) if key in fields else ends
            for key, ends in (("from", self.low), ("to", self.high))
        )
        slack = 1e-9 * (self.high - self.low)
        if not self.low - slack <= start < end <= self.high + slack:
            raise InputError(f"from and to must lie in {self.axis}, from < to, not {start:g}, {end:g}")
        if not isinstance(self.run, Dc):
            return Window(name, kind, signal, start, end)
        if self.run.kind == "i":
            raise InputError(f"ngspice has {kind} over a swept voltage source, not over a current source; use find")
        if not fields:
            return Window(name, kind, signal, -np.inf, np.inf)
        if kind in ("rms", "integ") and (self.run.step < 0 or end < 0):
            raise InputError(
                f"ngspice has {kind} from= to= of a rising sweep, up to 0 or more; sweep upwards, or use avg"
            )
        around = _SLACK * abs(self.run.step)
        return Window(name, kind, signal, start - around, end + around)

    def _signal(self) -> Signal:
        word = self.take()
        found = _SIGNAL.fullmatch(_DIFFERENCE.sub(r"v(\1,\2)", word))
        if found is None:
            raise InputError(f"a signal must be v(net), v(net,net) or i(voltage source), not {shown(word)}")
        kind, first, second = found["kind"], found["first"], found["second"]
        if kind == "v":
            ends = [Voltage(net) for net in (first, second) if net is not None]
            grounded = [net for net in ends if net.net not in ("0", "gnd")]
            if ends[0] not in grounded:
                raise InputError(
                    f"{word} must not begin with ground; begin with the other net, or negate it in a param"
                )
            signal = Signal(*grounded)
        elif second is None and first.startswith("v"):
            signal = Signal(Current(first[1:]))
        else:
            raise InputError(f"i must have the name of one voltage source of the top level, not {shown(word)}")
        if missing := [probe for probe in signal.probes if probe not in self.probes]:
            what = missing[0].net if isinstance(missing[0], Voltage) else first
            raise InputError(f"{word} must name a net, or a voltage source of the top level; there is no {what}")
        return signal

    def _crossing(self) -> Crossing:
        """Read `v(a)=LEVEL`, where LEVEL may be a signal, and what counts its crossings."""
        signal = self._signal()
        if self.take() != "=" or not self.words:
            raise InputError("when must be followed by a signal, = and a level, such as v(a)=0.5")
        level = self._signal() if self.words[0].startswith(("v(", "i(", "par")) else self._number(self.take())
        return self._counted(signal, level)

    def _edge(self) -> Crossing | float:
        """Read what follows trig or targ: `v(a) val=LEVEL rise=1`, or `at=TIME`."""
        if self.words and self.words[0] == "at":
            self.take()
            return self._time("at")
        signal, level = self._signal(), None
        if self.words[:2] == ["val", "="]:
            del self.words[:2]
            level = self._number(self.take())
        if level is None:
            raise InputError("trig and targ must have a signal and then val=, the level that it crosses")
        return self._counted(signal, level)

    def _counted(self, signal: Signal, level: float | Signal) -> Crossing:
        count: Count = "cross"
        number, after = 1.0, -np.inf if isinstance(self.run, Dc) else 0.0
        for name, text in self._fields((*_COUNTS, "td")):
            if name == "td":
                if isinstance(self.run, Dc):
                    raise InputError("td counts in a transient, not in a sweep; leave it out")
                after = self._number(text)
                continue
            count = next(one for one in _COUNTS if one == name)
            number = _LAST if text == "last" else self._number(text)
            if number != _LAST and not (1 <= number <= _MOST and number == int(number)):
                raise InputError(f"{name} must be a whole number from 1 on, or last, not {shown(text)}")
            if text != "last" and number == _LAST:
                raise InputError(f"{name} must be a whole number from 1 on, or last, not 0")
        return Crossing(signal, level, count, int(number), after)

    def _fields(self, known: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Yield the fields that follow, such as rise=2, while their names are known."""
        seen: set[str] = set()
        while len(self.words) >= 2 and self.words[1] == "=" and self.words[0] in known:
            name, _, text = self.take(), self.take(), self.take()
            if name in seen or (name in _COUNTS and seen & set(_COUNTS)):
                raise InputError(f"{name} must be given once, and only one of rise, fall and cross")
            seen.add(name)
            yield name, text

    def _time(self, name: str) -> float:
        if self.take() != "=":
            raise InputError(f"{name} must be followed by = and a time in seconds, or a swept value")
        at, slack = self._number(self.take()), 1e-9 * (self.high - self.low)
        if not self.low - slack <= at <= self.high + slack:
            raise InputError(f"{name} must lie in {self.axis}, the run of .{_word(self.run)}, not {at:g}")
        return at

    def _inside(self, at: float) -> float:
        """Return where a signal is found: within a sweep's ends, which ngspice's points may not reach."""
        if not isinstance(self.run, Dc):
            return at
        around = _SLACK * abs(self.run.step)
        return min(max(at, self.low + around), self.high - around)

    def _number(self, text: str) -> float:
        if not text:
            raise InputError("a number is missing at the end")
        return self.parameters.evaluate(text)

    def _formula(self, name: str) -> Formula:
        if self.take() != "=" or not self.words:
            raise InputError("param must be followed by = and an expression in quotes")
        text = self.take().strip("'{}")
        used = dict.fromkeys(_USED.findall(text))
        known = {*self.before, *self.parameters.texts}
        if unknown := [one for one in used if one not in known]:
            raise InputError(
                f"the expression must use earlier measures and parameters, not {unknown[0]}; there are {listed(known)}"
            )
        given = tuple((one, self.parameters[one]) for one in used if one in self.parameters.texts)
        found = Formula(name, text, given)
        tried = [{one: start + k for k, one in enumerate(self.before)} for start in _PROBED]
        if all(np.isnan(found.value(one)) for one in tried):
            Parameters({key: repr(number) for key, number in {**dict(given), **tried[0]}.items()}).evaluate(text)
        return found
