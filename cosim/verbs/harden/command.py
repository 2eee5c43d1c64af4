"""Command `cosim harden`: change a network's circuit until enough chips work."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cosim.base.bounds import AUDIT, JOBS, Bounds
from cosim.base.errors import CosimError, InputError
from cosim.base.text import json_object, shown_path
from cosim.base.version import __version__
from cosim.cli.option_names import spell_options
from cosim.cli.session import VerbSession
from cosim.cli.settings import KeepingVerb
from cosim.cli.types import Integer, Number
from cosim.cli.verb import Result, argument, option, switch, verb
from cosim.verbs.common import check_outputs, json_option, output_option
from cosim.verbs.inner import InnerVerb, describe_network, fixed_options, read_inner

if TYPE_CHECKING:
    from cosim.network.types import Network
    from cosim.verbs.explore.circuits import Circuits
    from cosim.verbs.harden.study import Hardening

_CHIPS = 200
TRAINED_FILE, RUN_FILE = "trained.pt", "run.json"
_KEPT = ("weight_cost", "power_cost", "batch", "range_max", "margin")  # of a first training, for the second one, too
_MOST_YIELD = 0.9999


def read_yield(text: str) -> float:
    """Return a share of chips, typed as 95% or 0.95. Raises ValueError for other text."""
    number, percent = (text[:-1], 100.0) if text.endswith("%") else (text, 1.0)
    try:
        return float(number) / percent
    except ValueError:
        raise ValueError(f"must be a share of the chips, such as 95%, not {text}") from None


@dataclass(frozen=True, kw_only=True)
class HardenOptions:
    """Options of `cosim harden`: montecarlo's command line, what is asked for, the training, transistor runs."""

    rest: tuple[str, ...] = argument("NETWORK [OPTION OF MONTECARLO]...", click.UNPROCESSED, nargs=-1, required=True)
    least_yield: float = option(
        "Share of the chips that must work.", Number(Bounds(0.01, _MOST_YIELD), read_yield), "95%", flags=("--yield",)
    )
    area_max: float = option(
        "Largest factor of the area of gates and capacitors; 1: as given.", Number(Bounds(1, 4)), 2.0
    )
    iterations: int = option("Gradient steps of the training; 0 for none.", Integer(Bounds(0, 10_000_000)), 1000)
    learning_rate: float = option("Peak learning rate.", Number(Bounds(0, 1, open_low=True)), 0.005, flags=("--lr",))
    behavioral: bool = switch("Leave transistors out.")
    transistor_chips: int = option("Fresh chips on transistors, before and after.", Integer(Bounds(0, 10_000)), 20)
    audit: int = option("Samples of these two circuits that ngspice runs, too.", Integer(AUDIT), 2)
    jobs: int = option("Worker processes of each run.", Integer(JOBS), 2, flags=("--jobs", "-j"))
    output: Path = output_option("runs/harden")
    json_file: Path | None = json_option()


def run(options: HardenOptions, session: VerbSession) -> Result:
    """Change the circuit of NETWORK until --yield of its chips work.

    Chips of the circuit as given are counted, as by cosim montecarlo. Then the network goes on with its training, now
    on chips that vary (cosim train --from), at epsilon 0 with the noise of the devices if --noise is given. Then those
    mirrors whose mismatch costs most accuracy get more devices in parallel, up to --area-max. Then bias pins get
    converters of 2, 3 or 4 bits. The first circuit whose chips, and as many fresh ones, have the yield is kept, and
    checked on transistors. Options of montecarlo say how chips and samples are drawn (by default 200 chips) and what a
    chip must do. The folder receives network.pt, overrides.toml if mirrors have more devices, harden.json, .png, .svg
    and report.html. The same command continues an interrupted run.
    """
    from cosim.base.store import continue_run
    from cosim.exchange.checkpoint import load_network
    from cosim.results.kept_page import REPORT_FILE, read_page
    from cosim.verbs.explore.circuits import Circuits, check_transistors, read_chips, software_spec
    from cosim.verbs.harden.study import HardeningRun

    inner = read_chips("harden", options.rest, jobs=options.jobs, fresh=session.fresh)
    inner = _with_chips(inner)
    specs = _specs(inner) or (software_spec(inner),)
    output = options.output
    check_outputs("harden", output, options.json_file)
    for file in (inner.network, inner.given.get("overrides")):
        if isinstance(file, Path) and output.resolve() in file.resolve().parents:
            raise InputError(f"{shown_path(file)}: lies in the folder of the results; choose another one with -o")
    if not options.behavioral:
        check_transistors()
    given = Circuits(inner, specs, output, options.audit)
    training = training_settings(load_network(inner.network), inner, options) if options.iterations else {}
    about = _about(options, given, training)
    session.take_folder("harden", output)
    continue_run(output / RUN_FILE, json.loads(json.dumps(json_object(about))))
    found = HardeningRun(given, _training(given, training) if training else None, options.least_yield, options.area_max)
    chosen = found.run(None if options.behavioral else options.transistor_chips)
    result = replace(about, steps=found.steps, chosen=chosen, mirrors=found.mirrors, measured=found.measured)
    _write(output, result, found.tried[chosen].circuits, given)
    return Result(
        result,
        read_page(output),
        report=f"report: {output / REPORT_FILE}",
        fault=None if result.met else "",
    )


def _with_chips(inner: InnerVerb) -> InnerVerb:
    """Return montecarlo's command line with 200 chips where no number was typed."""
    if inner.given.get("chips") is not None:
        return inner
    return replace(inner, options=replace(inner.options, chips=_CHIPS), given={**inner.given, "chips": _CHIPS})


def _specs(inner: InnerVerb) -> tuple[str, ...]:
    """Return the typed limits of a chip. Raises InputError for a file of limits and for one on the yield."""
    from cosim.verbs.montecarlo.spec import parse_spec

    if wrong := next((text for text in inner.options.specs if text.endswith(".toml")), None):
        raise InputError(f"--spec {wrong}: a hardening takes no file of limits; give each as METRIC>=NUMBER")
    specs = [parse_spec(text) for text in inner.options.specs]
    if wrong := next((spec.text for spec in specs if spec.metric == "yield"), None):
        raise InputError(f"--spec {wrong}: give the share of the chips that must work as --yield")
    return tuple(spec.text for spec in specs)


def _training(given: "Circuits", settings: Mapping[str, str | bool]) -> "Callable[[], tuple[str, str, Circuits]]":
    """Return a function that trains the given network further; settings: as `training_settings` returns them."""
    from cosim.tasks.load import check_task

    place = given.output / TRAINED_FILE
    chips = replace(given.chips, options=replace(given.chips.options, network_file=place))
    typed = [
        f"--{name}" if value is True else f"--{name}={value}" for name, value in settings.items() if name != "task"
    ]

    def train() -> "tuple[str, str, Circuits]":
        try:
            task = check_task(str(settings["task"]))
            inner = read_inner("train", [*typed, "--", task], jobs=given.chips.jobs, fresh=given.chips.fresh)
        except CosimError as error:
            reason = str(error)
        except click.ClickException as error:
            reason = error.format_message()
        else:
            reason, _ = inner.run(place, {})
        return spell_options(reason), TRAINED_FILE, replace(given, chips=chips)

    return train


def training_settings(network: "Network", chips: InnerVerb, options: HardenOptions) -> dict[str, str | bool]:
    """Return task, and option -> value, of the `cosim train` that goes on with a network on chips that vary.

    It trains with the noise of the devices if the chips have noise, and epsilon is 0: `--device-noise` knows no other.
    """
    from cosim.tasks.load import brings_data, is_task

    settings, given = network.history.get("settings", {}), dict(chips.given)
    if is_task(network.task) and brings_data(network.task):
        given.pop("data", None)  # samples of the chips; the task has its own to train on
    own_samples = given.get("data") is not None and not is_task(network.task)
    found: dict[str, str | bool] = {
        "task": "npz" if own_samples else network.task,
        "from": str(chips.network),
        "variation": "local",
        "noise": "0",
        "iterations": str(options.iterations),
        "lr": repr(options.learning_rate),
    }
    for name in ("technology", "pdk-root", "area", "data", "seed"):
        if given.get(name) is not None:
            found[name] = str(given[name])
    if given.get("noise") and not settings.get("epsilon"):
        found["device-noise"] = True
    return found | {name.replace("_", "-"): str(settings[name]) for name in _KEPT if name in settings}


def _about(options: HardenOptions, given: "Circuits", training: Mapping[str, str | bool]) -> "Hardening":
    """Return the description of a hardening, without steps; files are named without their folders."""
    from cosim.technology.catalog import DEFAULT_TECHNOLOGY, technology_names
    from cosim.verbs.harden.study import Hardening

    def shown(name: str, value: object) -> object:
        own = name == "technology" and value not in technology_names()
        return Path(str(value)).name if own or name in ("from", "data", "pdk-root") else value

    chips = given.chips
    network, digest = describe_network(chips.network)
    return Hardening(
        network=network,
        network_hash=digest,
        file=chips.network.name,
        technology=str(shown("technology", chips.given.get("technology", DEFAULT_TECHNOLOGY))),
        options={name: shown(name, value) for name, value in fixed_options(chips.command, chips.given).items()},
        training={name: shown(name, value) for name, value in training.items()},
        spec=given.specs,
        least_yield=options.least_yield,
        area_max=options.area_max,
        steps=(),
        chosen=0,
        made_with={"cosim": __version__},
    )


def _write(output: Path, found: "Hardening", kept: "Circuits", given: "Circuits") -> None:
    """Write the folder of a hardening that is done; kept, given: circuits of the chosen and of the given network."""
    from cosim.exchange.checkpoint import checkpoint_bytes, load_network
    from cosim.verbs.explore.study import OVERRIDES
    from cosim.verbs.harden.page import write_hardening

    file, overrides = kept.chips.network, found.after.values.get(OVERRIDES)
    content = file.read_bytes() if file.suffix == ".pt" else checkpoint_bytes(load_network(file), ".pt", str(file))
    changed = None if overrides is None else (output / str(overrides)).read_bytes()
    write_hardening(output, found, content, changed, given.chips)


command = verb(HardenOptions, run, KeepingVerb, context_settings={"ignore_unknown_options": True})
