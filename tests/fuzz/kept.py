"""What cosim keeps and reads back, as it is written: each file broken, and each with other content under a checksum.

`kept_files` lists them, for the fuzzer (`targets`) and for single flipped bits (`flips.py`).
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import mutate
import numpy as np

from cosim.automata.automaton import read_table
from cosim.base.claim import own_folder
from cosim.base.resources import models_path
from cosim.base.seal import (
    check_zip,
    read_sealed,
    seal_json,
    seal_line,
    seal_text,
    seal_zip,
    unseal_json,
    unseal_line,
    unseal_text,
)
from cosim.base.settings import RunSettings, read_settings, write_settings
from cosim.base.store import settings_key
from cosim.base.text import json_object
from cosim.circuit.elements import Mos
from cosim.compiler.design import Design, network_hash
from cosim.compiler.overrides import BiasOverride, Overrides, TransistorOverride, format_overrides, read_overrides
from cosim.compiler.passes import compile_network
from cosim.engines.batch.device_tables import (
    DRAIN_COLUMNS,
    FOUR_TERMINAL_COLUMNS,
    GATE_COLUMNS,
    RESPONSES,
    FourTerminalTable,
    GridAxis,
    ThreeTerminalTable,
    load_table,
    table_bytes,
)
from cosim.engines.engine import Run
from cosim.mask.extract import Parasitic
from cosim.mask.record import POSITIONS, WIRES, extracted, format_wires, nets_of, read_positions, table
from cosim.network.types import Network
from cosim.results.kept_page import read_page
from cosim.results.metrics import Estimate
from cosim.results.page import format_pages, format_text
from cosim.tasks.testset import TestSet
from cosim.technology.calibration import CHIP_FILE, load_calibration
from cosim.technology.catalog import load_technology
from cosim.technology.noise import NOISE_FILE
from cosim.variation.draws import VariationPlan
from cosim.verbs.calibrate.find import shipped_path
from cosim.verbs.diff.page import difference_page
from cosim.verbs.diff.pair import diff_folders
from cosim.verbs.explore.search import CHECKS_FILE, SEARCH_FILE, TRIALS_FILE, CheckedTrial, belongs, open_search
from cosim.verbs.explore.study import Exploration, Knob, OnTransistors, SearchTrial, front_of, violation, worth
from cosim.verbs.montecarlo.keep import keep_trial
from cosim.verbs.montecarlo.run import run_montecarlo, run_settings
from cosim.verbs.montecarlo.spec import parse_spec, read_specs
from cosim.verbs.montecarlo.store import open_store
from cosim.verbs.montecarlo.trial import Trial, run_chips
from cosim.verbs.power.study import run_power
from cosim.verbs.signoff.plan import format_plan, read_plan
from cosim.verbs.simulate.samples import run_samples
from cosim.verbs.sweep.study import find_figures

Change = Callable[[Random, bytes], bytes]
SUMMED = "network.npz", "samples.npz"  # of a Monte Carlo run, with the calibration: trial.json has their checksums
KNOBS = (Knob("i-unit", "A", 1e-9, 1e-10, 1e-8, log=True), Knob("units", "", 8, values=(4, 8, 16)))
SOUGHT = Exploration(
    "net", "0123456789abcdef", "net.npz", {}, KNOBS, ("yield", "power"), ("accuracy>=0.4",), 0.5, 3,
    trials=(), front=(), unvaried=(), notes=(), made_with={},
)  # fmt: skip


@dataclass(frozen=True)
class Form:
    """How a file is built. change: another content, under a checksum that fits where it still can carry one; fits:
    whether the checksums over all of a content fit, None for a file that has none."""

    change: Change
    fits: Callable[[bytes], bool] | None = None


@dataclass(frozen=True)
class File:
    """A kept file. read: what is made of it, which raises a CosimError for what is refused, or returns None for what is
    measured anew."""

    name: str
    path: Path
    read: Callable[[], object]
    form: Form


def resealed(unseal: Callable[[bytes], bytes], seal: Callable[..., bytes], change: Change) -> Form:
    """Return the form of a file with a checksum in it; `unseal` raises ValueError where that does not fit."""

    def changed(rng: Random, content: bytes) -> bytes:
        other = change(rng, unseal(content))
        try:
            return seal(other)
        except Exception:
            return other

    return Form(changed, lambda content: _passes(unseal, content))


def _passes(check: Callable[[bytes], object], content: bytes) -> bool:
    try:
        check(content)
    except ValueError:
        return False
    return True


def _seal_object(content: bytes) -> bytes:
    found = json.loads(content)
    return seal_json(found) if isinstance(found, dict) and found else content


OBJECT = resealed(unseal_json, _seal_object, mutate.mutate_json)
TABLE = resealed(unseal_text, lambda content: seal_text(content.decode("utf-8", "surrogateescape")), mutate.mutate_text)


def archive(change: Change = mutate.mutate_npz, key: str = "") -> Form:
    """Return the form of a zip whose comment is its checksum."""

    def unseal(content: bytes) -> bytes:
        check_zip(content, key)
        return content

    return resealed(unseal, lambda content: seal_zip(content, key), change)


def lines(key: str) -> Form:
    """Return the form of a file that grows by lines, a checksum in each; what follows the last end of a line is one
    that was being written when its process ended."""

    def changed(rng: Random, content: bytes) -> bytes:
        whole = content.splitlines(keepends=True)
        place = rng.randrange(len(whole))
        other = mutate.mutate_value(rng, json.loads(unseal_line(whole[place], key)))
        whole[place] = seal_line(other, key) if isinstance(other, dict) and other else b"{}\n"
        return b"".join(whole)

    def check(content: bytes) -> None:
        for line in content[: content.rfind(b"\n") + 1].splitlines(keepends=True):
            unseal_line(line, key)

    return Form(changed, lambda content: _passes(check, content))


def summed(path: Path, change: Change = mutate.mutate_npz) -> Form:
    """Return the form of a file whose checksum is in another: no other content fits."""
    whole = path.read_bytes()
    return Form(change, lambda content: content == whole)


def kept_files(folder: Path, network: Network) -> list[File]:
    """All of them, written below `folder` by what writes them."""
    design = compile_network(network, load_technology("generic180"), load_calibration(shipped_path("generic180", 8)))
    return [*_measured(folder), *_drawing(folder, design), *_search(folder), *_runs(folder, design), *_by_hand(folder)]


def _measured(folder: Path) -> list[File]:
    devices = models_path() / "devices"
    shipped = ((shipped_path("generic180", 8), load_calibration), (devices / "generic180.chip.json", CHIP_FILE.load),
               (devices / "generic180.noise.json", NOISE_FILE.load))  # fmt: skip
    found = []
    for source, load in shipped:
        path = _write(folder / "cache" / source.name, source.read_bytes())
        found.append(File(f"cache, {source.name}", path, lambda load=load, path=path: load(path), OBJECT))
    rng, axis = np.random.default_rng(2), GridAxis(0.0, 0.1, 4)
    tied = ThreeTerminalTable(
        axis, axis, *(rng.normal(size=(3, n, 4)) for n in (GATE_COLUMNS, DRAIN_COLUMNS, RESPONSES)), 1e-15, 0.0
    )
    values = rng.normal(size=(5, 5, 5, FOUR_TERMINAL_COLUMNS)).astype(np.float32)
    for one in (tied, FourTerminalTable(axis, axis, axis, values.astype(float), 0.026, 0.7, 1e-3)):
        name, text = type(one).__name__, json.dumps({"technology": "generic180"})
        path = _write(folder / "cache" / f"{name}.npz", table_bytes(one, text))
        read = lambda path=path, text=text: load_table(path, text)  # noqa: E731
        found.append(File(f"cache, table of {name}", path, read, archive(key=text)))
    return found


def _drawing(folder: Path, design: Design) -> list[File]:
    label = next(label for label, net in nets_of(design.flat).items() if net not in ("0", "vdd"))
    wires = format_wires([Parasitic(label, "vss", "over", 1e-15), Parasitic("vdd", label, "beside", 2e-15)], design)
    places = [(mos.name, 1.0, 2.5) for mos in design.flat.elements if isinstance(mos, Mos)]
    head = f"# {network_hash(design)} on {design.technology.name}"
    positions = seal_text(f"{head}\n{table(('device', 'x_um', 'y_um'), places)}")
    drawn = folder / "drawn"
    return [
        File(WIRES, _write(drawn / WIRES, wires), lambda: extracted(design, drawn).flat.elements, TABLE),
        File(POSITIONS, _write(drawn / POSITIONS, positions), lambda: read_positions(drawn, design), TABLE),
    ]


def _search(folder: Path) -> list[File]:
    """A search of three trials; one of fewer is what goes on from there, so its others are measured anew."""
    place, search = folder / "search", {"search": "one"}
    place.mkdir()
    trials, checks = open_search(place, search)
    for number in range(3):
        figures = {"yield": Estimate(0.5 + number / 10, 0.4, 0.9), "power": Estimate(1e-8 * number)}
        trials.append(SearchTrial(number, f"trial-{number}", {"i-unit": 1e-9, "units": 8}, figures))
        checks.append(CheckedTrial(number, OnTransistors("batch", 5, {"accuracy": Estimate(0.8, 0.1, 0.9)})))

    def read() -> object:
        kept_trials, kept_checks = open_search(place, search)
        tried = [one for one in kept_trials.records.values() if belongs(SOUGHT, one)]
        scores = [(violation(one, 0.5), worth(one, SOUGHT.objectives) if one.figures else ()) for one in tried]
        if len(tried) < 3 or len(kept_checks.records) < 3:
            return None
        return front_of(tried, SOUGHT.objectives, 0.5), scores, tried, kept_checks.records

    names = ((SEARCH_FILE, OBJECT), (TRIALS_FILE, lines(trials._key)), (CHECKS_FILE, lines(trials._key)))
    return [File(f"search, {name}", place / name, read, form) for name, form in names]


def _runs(folder: Path, design: Design) -> list[File]:
    x = np.random.default_rng(4).uniform(size=(6, 4, design.network.encoding.features))
    samples = TestSet(x, np.arange(6) % 3, np.full(6, 4), np.arange(6))
    places = {verb: (folder / f"{verb} a", folder / f"{verb} b") for verb in ("simulate", "power", "montecarlo")}
    trial = Trial(design, samples, VariationPlan("local", 2, 3))
    a, _ = places["simulate"]
    with own_folder(a, "simulate"):
        run_samples(design, samples, Run(a, 0, engine="behavioral"), lambda *_: None)
    a, _ = places["power"]
    with own_folder(a, "power"):
        run_power(design, samples, Run(a, 0), lambda *_: None, simulate=False)
    a, _ = places["montecarlo"]
    with open_store(a, run_settings(trial)) as store:
        keep_trial(a, trial, "generic180")
        run_montecarlo(
            trial,
            store,
            lambda numbers: run_chips(trial, tuple(numbers)),
            [parse_spec("power<=1uW")],
            None,
            lambda *_: None,
        )
    for a, b in places.values():
        shutil.copytree(a, b)
    key, kept = settings_key(run_settings(trial)), places["montecarlo"][0]
    kinds = {
        "simulate": (("simulation.npz", archive()), ("design.json", OBJECT)),
        "power": (("power.npz", archive()), ("power.json", OBJECT), ("design.json", OBJECT)),
        "montecarlo": (("summary.json", OBJECT), ("run.json", OBJECT), ("trial.json", OBJECT),
                       ("chips.jsonl", lines(key)), *((name, summed(kept / name)) for name in SUMMED)),
    }  # fmt: skip
    found = []
    for verb, names in kinds.items():
        a, b = places[verb]

        def read(a: Path = a, b: Path = b) -> object:
            difference = diff_folders(a, b)
            return format_text(difference_page(difference, picture=False)), json.dumps(json_object(difference))

        found += [File(f"diff of {verb}, {name}", a / name, read, form) for name, form in names]
    a = places["power"][0]
    found.append(File("page.json", a / "page.json", lambda: format_pages([read_page(a)]), OBJECT))
    figures = lambda: dict(find_figures(read_sealed(a / "power.json", "again")))  # noqa: E731
    return [*found, File("figures of a point", a / "power.json", figures, OBJECT)]


def _by_hand(folder: Path) -> list[File]:
    """What users may edit: it has no checksum."""
    settings = folder / "settings"
    settings.mkdir()
    write_settings(
        settings, RunSettings("compare", "0.1.0", "", {"network": "a.npz"}, {"samples": 5, "spec": ["a", "b"]})
    )
    plan = _write(folder / "plan.toml", format_plan(read_plan(None)).encode())
    specs = _write(folder / "specs.toml", b'[spec]\naccuracy = ">= 0.9"\n[[at]]\ncorner = "ss"\npower = "<= 1uW"\n')
    changes = Overrides(
        (TransistorOverride(name="network.*", role="weight", m=3), TransistorOverride(mirror="bias_thresh_#", w=2e-6)),
        (BiasOverride(pin="bias_gain_#", factor=1.1), BiasOverride(pin="bias_width_0", current=1e-9)),
    )
    overrides = _write(folder / "overrides.toml", format_overrides(changes).encode())
    states = {"even": {"next": {"0": "even", "1": "odd"}, "output": "no"}}
    states["odd"] = {"next": {"0": "odd", "1": "even"}, "output": "yes"}
    machine = {"symbols": ["0", "1"], "start": "even", "states": states}
    automaton = _write(folder / "automaton.json", json.dumps(machine).encode())
    return [
        File("run.toml", settings / "run.toml", lambda: read_settings(settings), Form(mutate.mutate_text)),
        File("plan", plan, lambda: format_plan(read_plan(plan)), Form(mutate.mutate_text)),
        File("specs", specs, lambda: read_specs([str(specs)]), Form(mutate.mutate_text)),
        File("overrides", overrides, lambda: format_overrides(read_overrides(overrides)), Form(mutate.mutate_text)),
        File("automaton", automaton, lambda: read_table(automaton), Form(mutate.mutate_json)),
    ]


def _write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path
