"""cosim explore: the cheapest circuit that still works."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cosim.base.bounds import AUDIT, JOBS, Bounds
from cosim.base.errors import InputError
from cosim.base.version import __version__
from cosim.cli.options import collecting
from cosim.cli.progress import say
from cosim.cli.settings import KeepingVerb
from cosim.cli.types import Integer
from cosim.engines.table import BATCH
from cosim.verbs.common import Destination, check_outputs, destination_options, take_folder, write_json
from cosim.verbs.explore.study import BITS, DEFAULT_OBJECTIVES, OBJECTIVES
from cosim.verbs.inner import Inner, describe_network, fixed_options

if TYPE_CHECKING:
    from cosim.verbs.explore.circuits import Circuits
    from cosim.verbs.explore.search import Space
    from cosim.verbs.explore.study import Exploration, Knob, Tried

LEAST_YIELD = 0.5
_OURS = {
    "engine": "chips run by the behavioral model, the front on transistors",
    "transistors": "chips run by the behavioral model, the front on transistors",
    "replay": "it replays one chip",
    "shard": "a trial needs all of its chips; give --dask for more machines",
    "contributions": "give it to cosim montecarlo",
    "output": "it is the search's own; give it before what goes to montecarlo",
}


@dataclass(frozen=True)
class Exploring:
    """Montecarlo's part of the command line, what is varied and sought, how far, and what is asked of transistors."""

    rest: tuple[str, ...]
    vary: tuple[str, ...]
    objectives: tuple[str, ...]
    specs: tuple[str, ...]
    trials: int
    round: int
    behavioral: bool
    transistor_chips: int
    audit: int
    jobs: int


@click.command(cls=KeepingVerb, context_settings={"ignore_unknown_options": True})
@click.argument("rest", nargs=-1, required=True, type=click.UNPROCESSED, metavar="NETWORK [OPTION OF MONTECARLO]...")
@click.option("--vary", multiple=True, metavar="NAME=VALUES",
              help="What is varied: LOW:HIGH, LOW:HIGH:log for equal factors, or A,B,C. Repeatable.")  # fmt: skip
@click.option("--objective", "objectives", multiple=True, type=click.Choice(list(OBJECTIVES)), metavar="NAME",
              help=f"What is sought, of {', '.join(OBJECTIVES)}; repeatable [default: "
              f"{', '.join(DEFAULT_OBJECTIVES)}].")  # fmt: skip
@click.option("--spec", "specs", multiple=True,
              help="What a chip must do, and the least yield; repeatable [default: accuracy 5 points below software's, "
              "yield>=50%].")  # fmt: skip
@click.option("--trials", type=Integer(Bounds(1, 10_000)), default=60, help="How many circuits are tried.")
@click.option("--round", type=Integer(Bounds(1, 10_000)), default=20, help="Trials before transistors are asked again.")
@click.option("--behavioral", is_flag=True, help="Ask no transistors.")
@click.option(
    "--transistor-chips", type=Integer(Bounds(0, 10_000)), default=0, help="Chips of the front on transistors, too."
)
@click.option("--audit", type=Integer(AUDIT), default=2, help="Samples in ngspice, too, of each circuit there.")
@click.option("--jobs", "-j", type=Integer(JOBS), default=2, help="Worker processes of each run.")
@destination_options("runs/explore")
@collecting(how=Exploring)
def command(*, to: Destination, how: Exploring) -> None:
    """Search for the circuits of NETWORK that no other beats in yield, power and area.

    A trial is cosim montecarlo on one circuit, by the behavioral model; --vary takes i-unit, units, t-step, supply,
    technology, cell, headroom, tau, saturate; of what is drawn, over the technology's, mirror-area, cell-area,
    switch-area; hold, a capacitance; bits of trim converters. Optuna proposes the next (extra explore). After each
    round the front goes through the batched engine without mismatch, and what misses a spec there is no choice.
    Sampling is montecarlo's: --chips, --seed, --data, --noise, --dask. The folder receives explore.json, .csv, .png,
    .svg, and report.html. The same command continues a search, also with more --trials.
    """
    from cosim.verbs.explore.circuits import check_base
    from cosim.verbs.explore.kept import TrialStore
    from cosim.verbs.explore.knobs import read_knobs
    from cosim.verbs.explore.page import write_exploration
    from cosim.verbs.explore.search import Search, Space, explore, optuna
    from cosim.verbs.explore.table import format_exploration

    library, inner = optuna(), Inner("montecarlo", how.rest, how.jobs)
    given, network = _given(inner)
    knobs = read_knobs(how.vary, inner.verb)
    check_base(given, tuple(knob.option for knob in knobs))
    knobs = _beginning(knobs, given)
    if both := next((knob.option for knob in knobs if knob.option in given and knob.option != "technology"), None):
        raise InputError(f"--{both} is both fixed and varied with --vary {both}; leave one of them out")
    check_outputs("explore", to.output, to.json_file)
    if not how.behavioral:
        _check_engine()
    circuits, least = _circuits(how, to.output, inner, (given, network))
    seed = given.get("seed", 0)
    objectives = tuple(dict.fromkeys(how.objectives)) or DEFAULT_OBJECTIVES
    space = Space(knobs, objectives, least, seed if isinstance(seed, int) else 0)
    take_folder("explore", to.output)
    about = _about(circuits, space, {"optuna": library.__version__, "cosim": __version__})
    key: dict[str, object] = {
        "search": about,
        "round": how.round,
        "transistors": not how.behavioral,
        "audit": how.audit,
    }
    key["data"] = _checksum(given.get("data"))
    search = Search(space, how.trials, how.round, circuits.run, None if how.behavioral else circuits.check, say)
    trials = explore(search, TrialStore(to.output, key))
    found = _found(circuits, about, trials, 0 if how.behavioral else how.transistor_chips)
    write_exploration(to.output, found)
    click.echo("\n".join(format_exploration(found)))
    write_json(to.json_file, found)
    click.echo(f"\nreport: {to.output / 'report.html'}   picture: {to.output / 'explore.png'}")
    if not found.front:
        raise SystemExit(1)


def _given(inner: Inner) -> tuple[Mapping[str, object], Path]:
    """Return the options that were typed for montecarlo, and the network's file.

    Raises InputError for an option that a search sets itself.
    """
    given, network = inner.given()
    if ours := next((name for name in _OURS if given.get(name) is not None), None):
        raise InputError(f"--{ours} is none of a search: {_OURS[ours]}")
    return given, network


def _beginning(knobs: "tuple[Knob, ...]", given: Mapping[str, object]) -> "tuple[Knob, ...]":
    """Return the knobs, with a supply that begins at that of the technology where its range contains it."""
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
    """Return the checksum of a file of samples; '' where there is none, and for a folder."""
    from cosim.base.settings import file_checksum

    return file_checksum(data) if isinstance(data, Path) and data.is_file() else ""


def _check_engine() -> None:
    """Raise MissingToolError, before anything runs, where there is no engine for transistors."""
    from cosim.base.errors import MissingToolError
    from cosim.engines.table import simulator_named

    try:
        simulator_named(BATCH).check()
    except MissingToolError as error:
        raise MissingToolError(f"{error}; or give --behavioral") from None


def _circuits(
    how: Exploring, output: Path, inner: Inner, typed: tuple[Mapping[str, object], Path]
) -> "tuple[Circuits, float]":
    """Return the runs of trials, and the least yield of a choice. Raises InputError for a spec of another kind."""
    from cosim.verbs.explore.circuits import Circuits
    from cosim.verbs.montecarlo.spec import parse_spec

    if any(text.endswith(".toml") for text in how.specs):
        raise InputError("--spec: a search takes no file of specs; give each as METRIC>=NUMBER")
    specs = [parse_spec(text) for text in how.specs]
    floors = [spec for spec in specs if spec.metric == "yield"]
    if wrong := next((spec.text for spec in floors if not spec.at_least), None):
        raise InputError(f"--spec {wrong}: the least yield of a choice is yield>=, such as yield>=50%")
    wanted = tuple(spec.text for spec in specs if spec.metric != "yield") or (_default_spec(*typed),)
    given, network = typed
    least = max((spec.limit for spec in floors), default=LEAST_YIELD)
    return Circuits(inner, given, network, wanted, output, how.audit), least


def _default_spec(given: Mapping[str, object], network_file: Path) -> str:
    """Return the spec of an accuracy at most 5 points below the software's on the same samples."""
    from cosim.network.reference import pool_readout, run_reference
    from cosim.verbs.loading import draw_samples, load_ranged
    from cosim.verbs.montecarlo.spec import spec_near

    options: dict[str, object] = {"data": None, "samples": None, "seed": 0, "tolerance": None, **given}
    data, count, seed, tolerance = (options[name] for name in ("data", "samples", "seed", "tolerance"))
    assert data is None or isinstance(data, Path)
    assert count is None or isinstance(count, int)
    assert tolerance is None or isinstance(tolerance, float)
    network = load_ranged(network_file, None)
    test_set = draw_samples(network, data, count, seed if isinstance(seed, int) else 0, say).tolerating(tolerance)
    pooled = pool_readout(
        run_reference(network, test_set.x, test_set.lengths).readout, test_set.lengths, network.readout.pooling
    )
    right = float(test_set.target.same(test_set.target.answers(pooled), test_set.y).mean())
    return spec_near(right, "the network").text


def _about(circuits: "Circuits", space: "Space", made_with: Mapping[str, str]) -> "Exploration":
    """Return the search with no trial yet."""
    from cosim.verbs.explore.knobs import NAMES
    from cosim.verbs.explore.study import Exploration
    from cosim.verbs.explore.table import AREA_NOTE, BITS_NOTE

    name, digest = describe_network(circuits.network)
    varied = [knob.option for knob in space.knobs]
    return Exploration(
        network=name,
        network_hash=digest,
        file=circuits.network.name,
        options=fixed_options(circuits.chips.verb, circuits.given),
        knobs=space.knobs,
        objectives=space.objectives,
        spec=circuits.specs,
        least_yield=space.least_yield,
        seed=space.seed,
        trials=(),
        front=(),
        unvaried=tuple(one for one in NAMES if one not in varied and one not in circuits.given),
        notes=(AREA_NOTE, *((BITS_NOTE,) if BITS in varied else ())),
        made_with=made_with,
    )


def _found(circuits: "Circuits", about: "Exploration", trials: "tuple[Tried, ...]", chips: int) -> "Exploration":
    """Return the search with its trials; those of its front get the yield on fresh chips, and with `chips` that on
    transistors."""
    from cosim.verbs.explore.study import front_of

    front = front_of(trials, about.objectives, about.least_yield)
    counted: dict[int, Tried] = {}
    for k, one in enumerate(front, start=1):
        say(f"other chips, circuit {k} of {len(front)} of the front")
        seen = one.transistors
        if seen is not None and chips:
            seen = replace(seen, chips=chips, yield_=circuits.count(one, chips))
        counted[one.number] = replace(one, transistors=seen, fresh=circuits.again(one))
    trials = tuple(counted.get(one.number, one) for one in trials)
    return replace(about, trials=trials, front=tuple(one.number for one in front))
