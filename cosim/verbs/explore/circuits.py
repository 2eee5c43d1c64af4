"""Knobs of a search, and the circuits that a search or a hardening tries with them.

A knob is an option that shapes the circuit, or a drawn size, together with a range or some values. A circuit's chips
are run by cosim montecarlo or trim, the nominal circuit on transistors by compare.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

import click

from cosim.base.bounds import AREA, Bounds
from cosim.base.errors import InputError, MissingToolError
from cosim.base.quantities import format_quantity
from cosim.cli import load_verb
from cosim.cli.progress import say
from cosim.cli.settings import NO_SETTING, setting_name
from cosim.cli.types import Integer, Number, Quantity
from cosim.cli.verb import with_values
from cosim.compiler.overrides import Overrides, format_overrides, read_overrides
from cosim.engines.table import BATCH, simulator_named
from cosim.results.metrics import METRICS, Estimate
from cosim.technology.catalog import DEFAULT_TECHNOLOGY, technology_names
from cosim.technology.types import HOLD_CAPACITANCE
from cosim.verbs.explore.study import BITS, DRAWN, FIGURES, HOLD, OVERRIDES, Knob, OnTransistors, SearchTrial
from cosim.verbs.inner import COMPLAINT, Content, InnerVerb, read_inner, read_value, split_values
from cosim.verbs.montecarlo.keep import load_trial
from cosim.verbs.montecarlo.spec import parse_spec
from cosim.verbs.montecarlo.trial import Trial
from cosim.verbs.sweep.study import Value, find_figures

MAX_BITS = 12
OPTIONS = (
    "technology",
    "supply",
    "i-unit",
    "units",
    "t-step",
    "cell",
    "headroom",
    "tau",
    "saturate",
    "comparator-devices",
)
_OWN = {
    **{name: click.Option([f"--{name}"], type=Number(AREA), default=1.0) for name in DRAWN},
    HOLD: click.Option([f"--{HOLD}"], type=Quantity(Bounds(1e-18, 1e-6, "F")), default=HOLD_CAPACITANCE),
    BITS: click.Option([f"--{BITS}"], type=Integer(Bounds(0, MAX_BITS)), default=0),
}
NAMES = (*OPTIONS, *_OWN)
_LISTED = (*DRAWN, HOLD)
_FORM = "NAME=LOW:HIGH, NAME=LOW:HIGH:log or NAME=A,B,C, such as i-unit=0.2n:2n:log or cell-area=0.5,1,2"
_RANGE = re.compile(r"([^:]+):([^:]+)(?::([^:]+))?")
TECHNOLOGIES = "technologies"  # folder
_TRIMMED = ("yield", "accuracy", "power")
_COMPARED = ("accuracy", "task_agreement", "state_agreement", "power")
_OURS = {
    "engine": "chips run by the behavioral model, a choice on transistors",
    "transistors": "chips run by the behavioral model, a choice on transistors",
    "replay": "it replays one chip",
    "shard": "a circuit is judged by all of its chips; give --dask for more machines",
    "netlist": "it compiles circuits of its own; give --overrides",
    "contributions": "give it to cosim montecarlo",
    "output": "it is the verb's own; give it before what goes to montecarlo",
}
OF_CHIPS = ("noise", "spec", "temps", "supplies")  # of montecarlo; compare has them, too, and takes them otherwise


def read_knobs(texts: Sequence[str], verb: click.Command) -> tuple[Knob, ...]:
    """Read knobs from the values of --vary; verb: the command whose options are varied.

    Raises InputError that says what the values must be.
    """
    if not texts:
        raise InputError(f"--vary must be given at least once, {_FORM}; there are {', '.join(NAMES)}")
    knobs = tuple(_read_knob(text, verb) for text in texts)
    twice = next((knob.option for k, knob in enumerate(knobs) if knob.option in [one.option for one in knobs[:k]]), "")
    if twice:
        raise InputError(f"--vary {twice} is given twice; put its values into one --vary")
    return knobs


def _read_knob(text: str, verb: click.Command) -> Knob:
    name, values = split_values(text, "--vary", _FORM)
    if name == "area":
        raise InputError(f"--vary area: --area is for mismatch alone; vary what is drawn: {', '.join(DRAWN)}")
    if name not in NAMES:
        near = get_close_matches(name, NAMES, n=1)
        meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(NAMES)}"
        raise InputError(f"--vary {name}: nothing of this name shapes the circuit; {meant}")
    param = _OWN.get(name) or next(
        one for one in verb.params if isinstance(one, click.Option) and setting_name(one) == name
    )
    match = _RANGE.fullmatch(values)
    return _listed(name, param, values.split(",")) if match is None else _ranged(name, param, match)


def _listed(name: str, param: click.Option, words: list[str]) -> Knob:
    """Return a knob with a list of values; numbers are sorted, so that neighbours are alike."""
    found = [_value(word.strip(), param, name) for word in words]
    if len(set(found)) < len(found):
        raise InputError(f"--vary {name} has a value twice; give each value once")
    numbers = [one for one in found if not isinstance(one, str)]
    values = tuple(sorted(numbers)) if len(numbers) == len(found) else tuple(found)
    usual = _usual(param)
    start = usual if usual is not None and usual in values else values[len(values) // 2]
    return Knob(name, getattr(param.type, "unit", ""), start, values=values)


def _ranged(name: str, param: click.Option, match: re.Match[str]) -> Knob:
    """Return a knob with a range, LOW:HIGH or LOW:HIGH:log; between whole numbers, it takes whole numbers."""
    low, high = (_value(word.strip(), param, name) for word in match.group(1, 2))
    if isinstance(low, str) or isinstance(high, str):
        raise InputError(f"--vary {name}: takes words, so it has no ranges; list them with commas")
    if not low < high:
        raise InputError(f"--vary {name}: a range must end above where it begins, not {match.group()}")
    if match.group(3) not in (None, "log") or (match.group(3) and low <= 0):
        raise InputError(
            f"--vary {name}: a range may end with :log for equal factors, if it is positive, not {match.group()}"
        )
    if name in _LISTED:
        raise InputError(f"--vary {name}: every value is calibrated first; list a few, such as {name}=A,B,C")
    if isinstance(low, int) and isinstance(high, int):
        return _listed(name, param, [str(value) for value in range(low, high + 1)])
    usual, log = _usual(param), bool(match.group(3))
    middle = float(f"{(low * high) ** 0.5 if log else (low + high) / 2:.3g}")
    inside = isinstance(usual, float) and low <= usual <= high
    return Knob(
        name, getattr(param.type, "unit", ""), usual if usual is not None and inside else middle, low, high, log
    )


def _value(word: str, param: click.Option, name: str) -> Value:
    """Return a value of a knob, read by the option's own type."""
    try:
        return read_value(word, param, name)
    except InputError as error:
        raise InputError(f"--vary {error}") from None


def _usual(param: click.Option) -> Value | None:
    """Return the default value of an option that a search varies; None if the option has no such default."""
    default = param.default
    if not isinstance(default, str | int | float):
        return None
    return _value(str(default), param, str(param.name)) if not isinstance(default, float) else default


@dataclass(frozen=True)
class Circuits:
    """The circuits that a search or a hardening tries: runs them by other verbs, in subfolders of its folder.

    chips: montecarlo's command line as it was typed; specs: what a chip must do; output: folder of the search; audit:
    number of samples of a transistor run that ngspice checks.
    """

    chips: InnerVerb
    specs: tuple[str, ...]
    output: Path
    audit: int

    def run(self, number: int, values: dict[str, Value]) -> SearchTrial:
        """Run a trial, many chips of one circuit, by the behavioral model; number: of the trial; values: by knob."""
        folder = f"trial-{number:03d}"
        reason, figures = self._chips(folder, values, {})
        return SearchTrial(number, folder, values, figures, reason.replace(f"{self.output}/", "") or None)

    def again(self, tried: SearchTrial) -> Estimate | None:
        """Return a trial's yield on an equal number of fresh chips, which the search has not used to choose."""
        return self._chips(f"fresh-{tried.number:03d}", tried.values, self._fresh)[1].get("yield")

    def trial(self, tried: SearchTrial) -> Trial:
        """Return the experiment that the chips of a circuit went through, from the folder of their run."""
        return load_trial(self.output / tried.folder)

    def keep_overrides(self, name: str, overrides: Overrides) -> None:
        """Write overrides into the folder, under the name by which the values of a trial have them."""
        from cosim.base.write import make_folder, write_atomically

        path = self.output / name
        make_folder(path.parent)
        write_atomically(path, format_overrides(overrides).encode())

    def count(self, tried: SearchTrial, chips: int) -> Estimate | None:
        """Return a trial's yield on transistors, on the first `chips` fresh chips; None where they could not be run."""
        more = {**self._fresh, "engine": BATCH, "chips": chips, "spec": self.specs}
        folder = self.output / f"chips-{tried.number:03d}"
        if tried.values.get(BITS):
            return dict(find_figures(self._run("trim", folder, tried.values, more)[1])).get("rows.-1.yield")
        _, content = self._run("montecarlo", folder, tried.values, {**more, "audit": 0})
        return dict(find_figures(content)).get("yield")

    def check(self, tried: SearchTrial) -> OnTransistors:
        """Simulate a trial's circuit without mismatch on transistors, on all samples."""
        folder = self.output / f"transistors-{tried.number:03d}"
        reason, content = self._run("compare", folder, tried.values, {"engine": BATCH, "audit": self.audit})
        found = dict(find_figures(content.get("measured", {})))
        figures = {name: figure for name in _COMPARED if (figure := found.get(name)) is not None}
        samples = content.get("samples", 0)
        missed = "; ".join(self._missed(reason, content, figures))
        return OnTransistors(BATCH, samples if isinstance(samples, int) else 0, figures, missed)

    def _chips(
        self, folder: str, values: dict[str, Value], more: Mapping[str, object]
    ) -> tuple[str, dict[str, Estimate]]:
        """Run a circuit's chips; return (what went wrong or '', figures), with trim bits those of trimmed chips."""
        more = {"spec": self.specs, **more}
        reason, content = self._run("montecarlo", self.output / folder, values, more)
        if content and content.get("failed") == content.get("chips"):
            reasons = content.get("reasons")
            return f"every chip failed: {next(iter(reasons), reason) if isinstance(reasons, dict) else reason}", {}
        found = dict(find_figures(content))
        figures = {name: figure for name, key in FIGURES.items() if (figure := found.get(key)) is not None}
        if not figures or not values.get(BITS):
            return reason, figures
        reason, content = self._run("trim", self.output / f"{folder}-trim", values, more)
        found = dict(find_figures(content))
        trimmed = {name: figure for name in _TRIMMED if (figure := found.get(f"rows.-1.{name}")) is not None}
        return reason, figures | trimmed if trimmed else {}

    @property
    def _fresh(self) -> dict[str, object]:
        seed = self.chips.given.get("seed", 0)
        assert isinstance(seed, int)
        return {"seed": seed + 1}

    def _missed(self, reason: str, content: Content, figures: Mapping[str, Estimate]) -> Iterator[str]:
        """Yield the reasons why the run on transistors refutes a circuit; none if it confirms the circuit."""
        if not content:
            yield reason
        elif failed := content.get("failed"):
            yield f"{failed} simulations failed"
        elif reason == COMPLAINT:
            yield "its audit in ngspice refuses it"
        for spec in map(parse_spec, self.specs):
            found = figures.get(spec.metric)
            if found is not None and not spec.met_by(found.value):
                yield f"{spec.metric} {METRICS[spec.metric].format(found.value)}"

    def _run(
        self, name: str, folder: Path, values: dict[str, Value], more: Mapping[str, object]
    ) -> tuple[str, Content]:
        """Run a verb on the circuit that the knobs shape; return (what went wrong or '', content of its JSON file).

        The verb gets those of montecarlo's options that it has, and `more`. Drawn sizes become a technology file.
        """
        inner = self.chips if name == self.chips.name else self._other(name)
        knobs = {option: value for option, value in values.items() if option in OPTIONS}
        if name == "trim":
            knobs["bits"] = str(values[BITS])
        if place := self._technology(values):
            knobs["technology"] = str(place)
        if OVERRIDES in values:
            knobs["overrides"] = str(self.output / str(values[OVERRIDES]))
        return inner.run(folder, {**knobs, **more})

    def _other(self, name: str) -> InnerVerb:
        """Return another verb, given those of montecarlo's typed options that it has and that change its figures."""
        inner = read_inner(name, [str(self.chips.network)], jobs=self.chips.jobs, fresh=self.chips.fresh)
        left_out = OF_CHIPS if name == "compare" else ()
        known = {setting_name(one) for one in inner.command.params if one.name not in NO_SETTING} - {*left_out}
        given = {option: value for option, value in self.chips.given.items() if option in known and value is not None}
        return replace(inner, options=with_values(inner.command, inner.options, given))

    def _technology(self, values: dict[str, Value]) -> Path | None:
        """Write a technology file with a trial's drawn sizes; return its path, None if all sizes are as in the base."""
        from cosim.base.write import make_folder, write_atomically

        name, text = derived_technology(str(self.chips.given.get("technology", DEFAULT_TECHNOLOGY)), values)
        if not name:
            return None
        path = self.output / TECHNOLOGIES / f"{name}.toml"
        make_folder(path.parent)
        write_atomically(path, text.encode())
        return path


def read_chips(verb: str, words: Sequence[str], *, jobs: int, fresh: bool) -> InnerVerb:
    """Read montecarlo's command line, as it was typed behind another verb, which draws chips of several circuits.

    verb: for messages. Raises InputError for an option that this verb sets itself, and for a faulty file of overrides.
    """
    inner = read_inner("montecarlo", words, jobs=jobs, fresh=fresh)
    if (overrides := inner.given.get("overrides")) is not None:
        read_overrides(Path(str(overrides)))
    if ours := next((name for name in _OURS if inner.given.get(name) is not None), None):
        raise InputError(f"--{ours} is none of cosim {verb}: {_OURS[ours]}")
    return inner


def check_transistors() -> None:
    """Check that the engine for transistors is installed; raises MissingToolError."""
    try:
        simulator_named(BATCH).check()
    except MissingToolError as error:
        raise MissingToolError(f"{error}; or give --behavioral") from None


def software_spec(inner: InnerVerb) -> str:
    """Return the default spec of a search: an accuracy at most 5 points below the software's on the same samples."""
    from cosim.network.reference import pool_readout, run_reference
    from cosim.verbs.loading import draw_samples, load_ranged
    from cosim.verbs.montecarlo.spec import spec_near

    options, network = inner.options, load_ranged(inner.network, None)
    test_set = draw_samples(network, options.data, options.samples, options.seed, say).tolerating(options.tolerance)
    pooled = pool_readout(
        run_reference(network, test_set.x, test_set.lengths).readout, test_set.lengths, network.readout.pooling
    )
    right = float(test_set.same(test_set.answers(pooled), test_set.y).mean())
    return spec_near(right, "the network").text


def derived_technology(base: str, values: Mapping[str, Value]) -> tuple[str, str]:
    """Return (name, content) of a technology file with the drawn sizes among `values`; name '' if none differs."""
    areas = {group: value for knob, group in DRAWN.items() if (value := values.get(knob, 1.0)) != 1.0}
    hold = values.get(HOLD, HOLD_CAPACITANCE)
    parts = [f"{group[0]}{value:g}" for group, value in areas.items()]
    lines = [f'base = "{base}"']
    if hold != HOLD_CAPACITANCE:
        assert not isinstance(hold, str)
        parts.append("h" + format_quantity(hold, "F").replace(" ", ""))
        lines.append(f"hold_capacitance = {hold!r}")
    name = "-".join([base, *parts]).replace(".", "p") if parts else ""
    table = ["", "[area]", *(f"{group} = {value!r}" for group, value in areas.items())] if areas else []
    return name, "\n".join([f'name = "{name}"', *lines, *table, ""])


def check_base(given: Mapping[str, object], knobs: tuple[str, ...]) -> None:
    """Check that the knobs fit the options that are given.

    Raises InputError for drawn sizes of a technology from a user's file, and for bits with options that trim lacks.
    """
    technology = str(given.get("technology", DEFAULT_TECHNOLOGY))
    drawn = [name for name in knobs if name in (*DRAWN, HOLD)]
    if drawn and ("technology" in knobs or technology not in technology_names()):
        raise InputError(
            f"--vary {drawn[0]}: sizes are varied of one technology that comes with cosim, "
            f"{', '.join(technology_names())}, not {technology}; leave --vary {drawn[0]} out, or its sizes in a file"
        )
    if BITS in knobs and (strange := unknown_to_trim(given)):
        raise InputError(f"--vary {BITS}: cosim trim has no --{strange}; leave one of them out")


def unknown_to_trim(given: Mapping[str, object]) -> str:
    """Return the name of the first typed option of montecarlo that `cosim trim` does not have, '' for none."""
    known = {setting_name(one) for one in load_verb("trim").params}
    return next((name for name in given if name not in known and name != "dask"), "")
