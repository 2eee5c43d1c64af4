"""What is fuzzed: each loader with valid inputs, and a use of what it returns that reaches into every field."""

import io
import json
import shutil
import struct
import wave
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import mutate
import numpy as np
import torch
from kept import OBJECT, SUMMED, File, archive, kept_files, lines, summed

from cosim.base.claim import own_file
from cosim.base.errors import MappingError
from cosim.base.resources import models_path, trained_network_path
from cosim.base.seal import seal_npz
from cosim.base.store import kept_result, settings_key
from cosim.compiler.passes import compile_network
from cosim.exchange.checkpoint import load_network, save_checkpoint
from cosim.network.layers import FirstQuadrantLayer, SignedLayer
from cosim.network.types import InputEncoding, Network, Readout, network_to_arrays
from cosim.papers.backbone import Backbone
from cosim.papers.file import Model as SoftwareModel
from cosim.papers.file import load_model, model_bytes, save_model
from cosim.papers.shape import BackboneShape
from cosim.results.page import format_text
from cosim.tasks.audio import read_wav
from cosim.tasks.from_npz import load_npz_task
from cosim.tasks.images import read_idx
from cosim.tasks.task import Task, full_lengths
from cosim.tasks.testset import load_test_set
from cosim.technology.calibration import load_calibration
from cosim.technology.catalog import load_technology
from cosim.technology.foundry import DrawnTransistor, device_cards, model_card, read_file, read_section
from cosim.technology.parameters import Parameters
from cosim.training.config import Architecture, TrainingConfig
from cosim.training.trainer import state_path, train
from cosim.variation.draws import VariationPlan
from cosim.verbs.calibrate.find import shipped_path
from cosim.verbs.inspect.page import describe_network, network_page
from cosim.verbs.montecarlo.keep import keep_trial, load_trial
from cosim.verbs.montecarlo.run import run_settings, summarize_run
from cosim.verbs.montecarlo.spec import parse_spec
from cosim.verbs.montecarlo.store import open_store, read_store, unpack_draws
from cosim.verbs.montecarlo.trial import Trial, run_chips

LIBRARY = """* a made-up library
.include also.inc
.lib tt
.param vt='0.4 + dv' dv={agauss(0, 1, 3)*0.01} u0n=0.03
.lib 'tiny.lib' models
.endl tt
.lib models
.subckt n d g s b w=1 l=1 nf=1 mult=1
.param area='w*l'
mx d g s b inner w=w l=l delvto='0.01*area' mulu0=1
r1 d x 1
.model inner.1 nmos level=14 lmin=0.1u lmax=2u wmin=0.1u wmax=20u vth0={vt} u0='u0n*(1+0.1)'
+ version=4.8.1 tnom=25 toxe=4.1n
.model inner.2 nmos (level=54 lmin=2u lmax=100u wmin=0.1u wmax=20u vth0='vt*1.1' u0=2meg)
.ends
.model p pmos level=14 vth0=-0.4
.endl models
"""
EXPRESSION = b"{0.7*par_k*1e-06/p - sqrt(abs(b)) + max(1, 2)^2 + agauss(0, 1, 3) + (a > b)*5 + 10u}"


@dataclass(frozen=True)
class Target:
    """A loader: the file that is mutated, how, and what reads it; fits: as of a `Form`."""

    name: str
    path: Path
    mutate: Callable[[Random, bytes], bytes]
    load: Callable[[], object]
    fits: Callable[[bytes], bool] | None = None


def small_network(ramp: int | None) -> Network:
    """Both kinds of recurrent layers, with ranges and a history."""
    rng = np.random.default_rng(5)
    encoding = InputEncoding(np.zeros(2), np.ones(2), ramp_steps=ramp, levels=16)

    def weights(rows: int, columns: int) -> np.ndarray:
        return np.round(rng.normal(size=(rows, columns)) * 8) / 8

    ones = np.ones(3)
    first = FirstQuadrantLayer("a", ("input",), weights(3, encoding.width), ones / 2, 0.3 * ones, ones, ones)
    second = SignedLayer(
        "b", ("input", "a"), weights(2, encoding.width + 3), np.zeros(2), np.ones(2), np.ones(2), None, None, 1.0
    )
    readout = Readout(("a", "b"), weights(3, 5), np.zeros(3), "mean")
    history = {"settings": {"seed": 3}, "figures": {"test_accuracy": 0.8, "near": {"0.01": 0.3}}}
    ranges = {"b": np.array([[-1.0, -1], [1, 1]])}
    return Network(encoding, (first, second), readout, "digits", ("x", "y", "z"), 0.125, history, ranges)


def small_task() -> Task:
    """Three classes that a few units can tell apart."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(size=(40, 4, 2)).astype(np.float32), np.arange(40) % 3
    return Task(
        "made-up", x, y, x[:9], y[:9], full_lengths(x), full_lengths(x[:9]), ("a", "b", "c"), np.zeros(2), np.ones(2)
    )


def targets(folder: Path) -> list[Target]:
    """All loaders, with their valid inputs under `folder`."""
    network = small_network(4)
    return [
        *_networks(folder, network),
        *_data(folder, network),
        *_processes(folder, network),
        Target("expression", _write(folder / "expression.txt", EXPRESSION), mutate.mutate_text, _expression(folder)),
        *_kept(
            [
                stopped_training(folder / "state" / "model.npz"),
                *_stores(folder),
                *kept_files(folder / "all", one_layer(network)),
            ]
        ),
    ]


def _kept(files: list[File]) -> list[Target]:
    """Each kept file with other content under a checksum that fits, and broken where it has one."""
    found = [Target(one.name, one.path, one.form.change, one.read, one.form.fits) for one in files]
    broken = [replace(one, name=f"{one.name}, broken", mutate=mutate.mutate_bytes) for one in found if one.fits]
    return [*found, *broken]


def one_layer(network: Network) -> Network:
    """The network with its first layer alone, which compiles."""
    readout = replace(network.readout, sources=("a",), weight=np.eye(3))
    return replace(network, layers=network.layers[:1], readout=readout, state_ranges={})


def _write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def _npz(path: Path, **arrays: np.ndarray) -> Path:
    content = io.BytesIO()
    np.savez(content, **arrays)
    return _write(path, content.getvalue())


def _networks(folder: Path, network: Network) -> list[Target]:
    found = []
    arrays, _ = network_to_arrays(small_network(None))
    bare = {name: array for name, array in arrays.items() if not name.startswith("ranges.")}
    for suffix, change in ((".npz", mutate.mutate_npz), (".pt", mutate.mutate_torch)):
        path = folder / f"model{suffix}"
        save_checkpoint(path, network)
        found.append(Target(f"checkpoint {suffix}", path, change, _inspect(path)))
    path = _npz(folder / "bare.npz", **bare)
    found.append(Target("state dict .npz", path, mutate.mutate_npz, _inspect(path)))
    path = folder / "bare.pt"
    torch.save({name: torch.from_numpy(array) for name, array in bare.items()}, path)
    found.append(Target("state dict .pt", path, mutate.mutate_torch, _inspect(path)))
    return [*found, _software(folder / "software.pt")]


def _software(path: Path) -> Target:
    """A model that stays software, with a cell of each sort."""
    backbone = Backbone(BackboneShape(2, 3, cell="mingru+cmru", width=4, state=2, blocks=2))
    save_model(path, SoftwareModel(backbone, "made-up", ("x", "y", "z"), 0.5, {"figures": {"test_accuracy": 0.8}}))

    def load() -> object:
        with suppress(MappingError):
            load_network(path)
        model = load_model(path)
        return model_bytes(model), model.backbone(torch.zeros(1, 5, 2)) if model.backbone.shape.inputs == 2 else None

    return Target("software model", path, mutate.mutate_torch, load)


def _inspect(path: Path) -> Callable[[], object]:
    def inspect() -> object:
        network = load_network(path)
        return json.dumps(describe_network(network)), format_text(network_page(network, str(path)))

    return inspect


def stopped_training(path: Path) -> File:
    """A training that stopped at iteration 2 of 4."""
    path.parent.mkdir()
    config, task = TrainingConfig(Architecture(cells=3, layers=1), iterations=4, batch=5), small_task()

    class Stopped(Exception):
        pass

    def stop(iteration: int, _: object) -> None:
        if iteration == 2:
            raise Stopped

    with suppress(Stopped):
        train(config, task, path, stop)

    def resume() -> object:
        """On a copy: what is whole at the end is removed."""
        again = path.with_name("again.pt")
        again.unlink(missing_ok=True)
        with own_file(again):
            state_path(again).write_bytes(state_path(path).read_bytes())
        return train(config, task, again, resume=True)

    return File("state.pt", state_path(path), resume, archive(mutate.mutate_torch))


def _data(folder: Path, network: Network) -> list[Target]:
    rng = np.random.default_rng(1)
    x, y = rng.uniform(size=(12, 4, 2)), np.arange(12) % 3
    test = _npz(folder / "test.npz", x_test=x, y_test=y, len_test=np.arange(12) % 4 + 1)
    parts = {"x_train": x, "y_train": y, "x_test": x[:5], "y_test": y[:5], "len_train": np.full(12, 3)}
    task = _npz(folder / "task.npz", **parts)
    named = _npz(folder / "named.npz", **parts | {"y_train": np.array(["a", "b", "c"])[y], "y_test": np.eye(3)[y[:5]]})
    idx = _write(folder / "images", bytes([0, 0, 8, 3]) + struct.pack(">3I", 4, 5, 3) + rng.bytes(60))
    sound = io.BytesIO()
    with wave.open(sound, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(rng.bytes(600))
    word = _write(folder / "word.wav", sound.getvalue())
    return [
        Target("test set", test, mutate.mutate_npz, lambda: load_test_set(network, test)),
        Target("task", task, mutate.mutate_npz, lambda: load_npz_task(task)),
        Target("task with names", named, mutate.mutate_npz, lambda: load_npz_task(named)),
        Target("idx", idx, mutate.mutate_bytes, lambda: read_idx(folder, "images", 3)),
        Target("wav", word, mutate.mutate_bytes, lambda: read_wav(word, 8000, 1.0)),
    ]


def _processes(folder: Path, network: Network) -> list[Target]:
    technology = load_technology("generic180")
    calibration = _write(folder / "calibration.json", shipped_path("generic180", 8).read_bytes())
    devices = models_path() / "devices"
    toml = _write(folder / "own" / "own.toml", (devices / "generic180.toml").read_bytes())
    shutil.copy(devices / "generic180.lib", folder / "own")
    library = _write(folder / "lib" / "tiny.lib", LIBRARY.encode())
    _write(folder / "lib" / "also.inc", b".param scale=1 dv=0\n")
    plain = one_layer(network)

    def cards() -> object:
        read_file.cache_clear()
        read_section.cache_clear()
        own = load_technology(str(toml))
        return device_cards(own, [("n", own.sizing.mirror_n.w, own.sizing.mirror_n.l), ("p", 1e-6, 1e-6)])

    def card() -> object:
        read_file.cache_clear()
        read_section.cache_clear()
        section = read_section(library, "tt")
        sizes = DrawnTransistor("p", 1e-6, 1e-6, 1e-6), DrawnTransistor("n", 1e-6, 3e-6, 1e-6)
        return [model_card(section, drawn.polarity, drawn, drawn.polarity) for drawn in sizes]

    return [
        Target("calibration", calibration, OBJECT.change,
               lambda: compile_network(plain, technology, load_calibration(calibration)), OBJECT.fits),
        Target("technology", toml, mutate.mutate_text, cards),
        Target("library", library, mutate.mutate_text, card),
    ]  # fmt: skip


def _expression(folder: Path) -> Callable[[], object]:
    names = {"par_k": "2*p", "p": "3", "a": "b*b", "b": "1.5"}
    path = folder / "expression.txt"
    return lambda: Parameters(names).evaluate(path.read_bytes().decode(errors="replace"))


def _stores(folder: Path) -> list[File]:
    """A run of three chips, and a finished inference."""
    run, kept = folder / "run", folder / "kept"
    technology = load_technology("generic180")
    calibration = load_calibration(shipped_path("generic180", 8))
    network = load_network(trained_network_path("digits_d8"))
    design = compile_network(network, technology, calibration)
    trial = Trial(design, load_test_set(network, None).take(2, 0), VariationPlan("local", 2, 3))
    with open_store(run, settings := run_settings(trial)) as store:
        keep_trial(run, trial, "generic180")
        for record in run_chips(trial, (0, 1, 2)):
            store.append(record)

    def load() -> object:
        _, records = read_store(run)
        draws = [unpack_draws(record.draws) for record in records.values()]
        trial = load_trial(run)
        return draws and summarize_run(trial, list(records.values()), [parse_spec("power<=1uW")])

    forms = {"run.json": OBJECT, "trial.json": OBJECT, "chips.jsonl": lines(settings_key(settings))}
    forms |= {name: summed(run / name) for name in SUMMED}
    forms["calibration.json"] = summed(run / "calibration.json", mutate.mutate_json)
    arrays = {"states": np.zeros((3, 2), np.int16), "power_w": np.array(1e-9)}
    result = _write(kept / "0123.npz", seal_npz(arrays, "0123"))
    return [
        *(File(f"store, {name}", run / name, load, form) for name, form in forms.items()),
        File("kept result", result, lambda: kept_result(kept, "0123", arrays), archive(key="0123")),
    ]
