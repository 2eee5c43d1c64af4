"""Command `cosim explore`: find the cheapest circuit that still works."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cosim.base.bounds import AUDIT, JOBS, Bounds
from cosim.base.errors import InputError
from cosim.base.version import __version__
from cosim.cli.progress import say
from cosim.cli.session import VerbSession
from cosim.cli.settings import KeepingVerb
from cosim.cli.types import Integer
from cosim.cli.verb import Result, argument, option, switch, verb
from cosim.verbs.common import check_outputs, json_option, output_option
from cosim.verbs.explore.study import BITS, DEFAULT_OBJECTIVES, OBJECTIVES
from cosim.verbs.inner import InnerVerb, describe_network, fixed_options

if TYPE_CHECKING:
    from cosim.verbs.explore.circuits import Circuits
    from cosim.verbs.explore.study import Exploration, Knob, SearchTrial

LEAST_YIELD = 0.5


@dataclass(frozen=True, kw_only=True)
class ExploreOptions:
    """Options of `cosim explore`: montecarlo's command line, knobs, objectives, number of trials, transistor runs."""

    rest: tuple[str, ...] = argument("NETWORK [OPTION OF MONTECARLO]...", click.UNPROCESSED, nargs=-1, required=True)
    vary: tuple[str, ...] = option(
        "What is varied: LOW:HIGH, LOW:HIGH:log for equal factors, or A,B,C. Repeatable [default: i-unit, and of a "
        "technology that comes with cosim supply and cell-area].",
        multiple=True, metavar="NAME=VALUES",
    )  # fmt: skip
    objectives: tuple[str, ...] = option(
        f"What is sought, of {', '.join(OBJECTIVES)}; repeatable [default: {', '.join(DEFAULT_OBJECTIVES)}].",
        click.Choice(list(OBJECTIVES)), flags=("--objective",), multiple=True, metavar="NAME",
    )  # fmt: skip
    specs: tuple[str, ...] = option(
        "What a chip must do, and the least yield; repeatable [default: accuracy 5 points below software's, "
        "yield>=50%].",
        flags=("--spec",), multiple=True,
    )  # fmt: skip
    trials: int = option("How many circuits are tried.", Integer(Bounds(1, 10_000)), 60)
    round: int = option("Trials before transistors are asked again.", Integer(Bounds(1, 10_000)), 20)
    behavioral: bool = switch("Ask no transistors.")
    transistor_chips: int = option("Chips of the front on transistors, too.", Integer(Bounds(0, 10_000)), 0)
    audit: int = option("Samples in ngspice, too, of each circuit there.", Integer(AUDIT), 2)
    jobs: int = option("Worker processes of each run.", Integer(JOBS), 2, flags=("--jobs", "-j"))
    output: Path = output_option("runs/explore")
    json_file: Path | None = json_option()


def run(options: ExploreOptions, session: VerbSession) -> Result:
    """Search for the circuits of NETWORK that no other beats in yield, power and area.

    A trial is cosim montecarlo on one circuit, by the behavioral model; --vary takes i-unit, units, t-step, supply,
    technology, cell, headroom, comparator-devices, tau, saturate; of what is drawn, over the technology's,
    mirror-area, cell-area, switch-area; hold, a capacitance; bits of trim converters. Optuna proposes the next (extra
    explore). After each round the front goes through the batched engine without mismatch, and what misses a spec
    there is no choice. Sampling is montecarlo's: --chips, --seed, --data, --noise, --dask. The folder receives
    explore.json, .csv, .png, .svg, and report.html. The same command continues a search, also with more --trials.
    """
    from cosim.results.kept_page import read_page
    from cosim.verbs.explore.circuits import check_base, check_transistors, read_chips, read_knobs
    from cosim.verbs.explore.page import write_exploration
    from cosim.verbs.explore.search import Search, explore, open_search, optuna

    library, output = optuna(), options.output
    inner = read_chips("explore", options.rest, jobs=options.jobs, fresh=session.fresh)
    given = inner.given
    knobs = read_knobs(options.vary or usual_knobs(given), inner.command)
    check_base(given, tuple(knob.option for knob in knobs))
    knobs = _beginning(knobs, given)
    if both := next((knob.option for knob in knobs if knob.option in given and knob.option != "technology"), None):
        raise InputError(f"--{both} is both fixed and varied with --vary {both}; leave one of them out")
    check_outputs("explore", output, options.json_file)
    if not options.behavioral:
        check_transistors()
    circuits, least = _circuits(options, inner)
    objectives = tuple(dict.fromkeys(options.objectives)) or DEFAULT_OBJECTIVES
    session.take_folder("explore", output)
    about = _about(circuits, knobs, objectives, least, {"optuna": library.__version__, "cosim": __version__})
    key: dict[str, object] = {
        "search": about,
        "round": options.round,
        "transistors": not options.behavioral,
        "audit": options.audit,
    }
    key["data"] = _checksum(given.get("data"))
    check = None if options.behavioral else circuits.check
    search = Search(about, options.trials, options.round, circuits.run, check)
    trials = explore(search, open_search(output, key))
    found = _found(circuits, about, trials, 0 if options.behavioral else options.transistor_chips)
    write_exploration(output, found)
    return Result(
        found,
        read_page(output),
        report=f"report: {output / 'report.html'}   picture: {output / 'explore.png'}",
        fault=None if found.front else "",
    )


def usual_knobs(given: Mapping[str, object]) -> tuple[str, ...]:
    """Return the default knobs, as values of --vary: unit current, supply and cell size, if not in `given`."""
    from cosim.technology.catalog import technology_names

    own = given.get("technology", technology_names()[0]) not in technology_names()
    knobs = {"i-unit": "0.25n:1n:log"} if own else {"i-unit": "0.25n:1n:log", "supply": "1.2:1.8", "cell-area": "1,2,4"}
    return tuple(f"{name}={values}" for name, values in knobs.items() if given.get(name) is None)


def _beginning(knobs: "tuple[Knob, ...]", given: Mapping[str, object]) -> "tuple[Knob, ...]":
    """Return the knobs; a supply whose range contains the technology's own supply starts there."""
    from cosim.technology.catalog import DEFAULT_TECHNOLOGY, load_technology

    if not any(knob.option == "supply" for knob in knobs):
        return knobs
    root = given.get("pdk-root")
    usual = load_technology(
        str(given.get("technology", DEFAULT_TECHNOLOGY)), root if isinstance(root, Path) else None
    ).supply
    return tuple(
        replace(knob, start=usual)
        if knob.option == "supply" and (usual in knob.values or (knob.low or usual + 1) <= usual <= (knob.high or 0.0))
        else knob
        for knob in knobs
    )


def _checksum(data: object) -> str:
    """Return the checksum of a file of samples; '' for a folder or if there is none."""
    from cosim.base.settings import file_checksum

    return file_checksum(data) if isinstance(data, Path) and data.is_file() else ""


def _circuits(options: ExploreOptions, inner: InnerVerb) -> "tuple[Circuits, float]":
    """Return the circuits that the search tries, and the least yield of a choice; raises InputError for other specs."""
    from cosim.verbs.explore.circuits import Circuits, software_spec
    from cosim.verbs.montecarlo.spec import parse_spec

    if any(text.endswith(".toml") for text in options.specs):
        raise InputError("--spec: a search takes no file of specs; give each as METRIC>=NUMBER")
    specs = [parse_spec(text) for text in options.specs]
    floors = [spec for spec in specs if spec.metric == "yield"]
    if wrong := next((spec.text for spec in floors if not spec.at_least), None):
        raise InputError(f"--spec {wrong}: the least yield of a choice is yield>=, such as yield>=50%")
    wanted = tuple(spec.text for spec in specs if spec.metric != "yield") or (software_spec(inner),)
    least = max((spec.limit for spec in floors), default=LEAST_YIELD)
    return Circuits(inner, wanted, options.output, options.audit), least


def _about(
    circuits: "Circuits",
    knobs: "tuple[Knob, ...]",
    objectives: tuple[str, ...],
    least_yield: float,
    made_with: Mapping[str, str],
) -> "Exploration":
    """Return the description of a search, without trials."""
    from cosim.verbs.explore.circuits import NAMES
    from cosim.verbs.explore.study import AREA_NOTE, BITS_NOTE, Exploration

    chips = circuits.chips
    name, digest = describe_network(chips.network)
    varied, seed = [knob.option for knob in knobs], chips.given.get("seed", 0)
    return Exploration(
        network=name,
        network_hash=digest,
        file=chips.network.name,
        options=fixed_options(chips.command, chips.given),
        knobs=knobs,
        objectives=objectives,
        spec=circuits.specs,
        least_yield=least_yield,
        seed=seed if isinstance(seed, int) else 0,
        trials=(),
        front=(),
        unvaried=tuple(one for one in NAMES if one not in varied and one not in chips.given),
        notes=(AREA_NOTE, *((BITS_NOTE,) if BITS in varied else ())),
        made_with=made_with,
    )


def _found(circuits: "Circuits", about: "Exploration", trials: "tuple[SearchTrial, ...]", chips: int) -> "Exploration":
    """Return the search with its trials; circuits on the front also get their yield on fresh chips.

    chips: number of fresh chips that run on transistors as well, 0 for none.
    """
    from cosim.verbs.explore.study import front_of

    front = front_of(trials, about.objectives, about.least_yield)
    counted: dict[int, SearchTrial] = {}
    for k, one in enumerate(front, start=1):
        say(f"other chips, circuit {k} of {len(front)} of the front")
        seen = one.transistors
        if seen is not None and chips:
            seen = replace(seen, chips=chips, yield_=circuits.count(one, chips))
        counted[one.number] = replace(one, transistors=seen, fresh=circuits.again(one))
    trials = tuple(counted.get(one.number, one) for one in trials)
    return replace(about, trials=trials, front=tuple(one.number for one in front))


command = verb(ExploreOptions, run, KeepingVerb, context_settings={"ignore_unknown_options": True})
