"""Simulator tests have three modes: `--ngspice=required` (continuous integration), `auto` (skip without it), `off`."""

import fcntl
import os
import resource
import shutil
import signal
import subprocess
import sys
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import cosim.cli
from cosim.base import claim, write
from cosim.base.claim import MARKER
from cosim.base.errors import MissingToolError
from cosim.base.resources import trained_network_path
from cosim.circuit.bench import PRECISE, Bench, Tran, Voltage
from cosim.circuit.dialects.ngspice import format_deck, format_options
from cosim.circuit.elements import Capacitor, Circuit, Source
from cosim.compiler.passes import compile_network
from cosim.engines.engine import Failure
from cosim.engines.ngspice.library import find_ngspice_library
from cosim.engines.ngspice.process import run_deck
from cosim.exchange.checkpoint import load_network, save_checkpoint
from cosim.network.layers import FirstQuadrantLayer, Layer, ReluLayer, SignedLayer
from cosim.network.types import InputEncoding, Network, Readout
from cosim.technology.calibration import Calibration, load_calibration
from cosim.technology.catalog import load_technology
from cosim.technology.conditions import at
from cosim.technology.types import Technology
from cosim.verbs.calibrate.find import shipped_path
from cosim.verbs.montecarlo.keep import keep_trial
from cosim.verbs.montecarlo.run import default_spec, run_montecarlo, run_settings
from cosim.verbs.montecarlo.spec import parse_spec
from cosim.verbs.montecarlo.store import open_store
from cosim.verbs.montecarlo.trial import Trial, run_chips

# Files of a test process that take longest, longest first. They run first, so that no process has one left to do when
# the others are done. The second to sixth do without the batched engine, whose kernels the first compiles meanwhile.
LONGEST = (
    "verbs/signoff/test_signoff.py", "papers/test_train.py", "circuit/test_dialects.py", "fuzz/test_loaders.py",
    "cli/test_docs.py", "training/test_trainer.py", "engines/simulation/test_around.py",
    "engines/batch/test_transient_noise.py", "engines/test_lanes.py", "verbs/montecarlo/test_command.py",
    "engines/batch/test_network.py", "results/test_browser.py", "verbs/montecarlo/test_page.py",
    "training/test_mismatch.py", "verbs/test_places.py", "cli/test_settings.py", "engines/test_table.py",
    "verbs/train/test_command.py", "units/test_beta.py",
)  # fmt: skip


def pytest_addoption(parser):
    parser.addoption(
        "--ngspice", choices=("required", "auto", "off"), default="auto",
        help="tests marked ngspice: fail without libngspice, skip without it, or skip always",
    )  # fmt: skip


def pytest_configure():
    """A background job, such as `nohup make test &`, inherits that SIGINT is ignored; tests stop runs with it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    """Run the longest files first; within a file nothing changes."""
    tests = Path(__file__).parent
    rank = {tests / name: k for k, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give each file to one process: what a module's fixtures simulate is then simulated once."""
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False
    return LoadFileScheduling(config, log)


@cache
def ngspice_problem(mode: str) -> str:
    """Why a simulator test cannot run here; empty if it can."""
    if mode == "off":
        return "switched off by --ngspice=off"
    try:
        find_ngspice_library()
    except MissingToolError as error:
        return str(error)
    return ""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Before any fixture, because fixtures of a whole module simulate, too."""
    if item.get_closest_marker("ngspice") is None:
        return
    mode = item.config.getoption("--ngspice")
    if problem := ngspice_problem(mode):
        if mode == "required":
            pytest.fail(problem, pytrace=False)
        pytest.skip(problem)


@pytest.fixture(autouse=True, scope="session")
def known_results():
    """Whatever a test lets a verb write into its folder, `is_result` knows it, or a user's file might be replaced."""
    stage = write._stage

    def checked(target: Path, content: bytes) -> Path:
        marker = target.parent / MARKER
        typed = target.suffix == ".json" or (target.suffix == ".html" and target.name != "report.html")  # by its user
        known = target.name == "probe" or typed
        if not known and marker.is_file() and (verb := marker.read_text().strip()) in claim._RESULTS:
            assert claim.is_result(target.name, verb), f"base/claim.py: {target.name} of {verb} is missing"
        return stage(target, content)

    write._stage = checked
    yield
    write._stage = stage


@pytest.fixture(scope="session")
def technology() -> Technology:
    return load_technology("generic180")


@pytest.fixture(scope="session")
def calibration(technology: Technology) -> Calibration:
    """The shipped one, 8 unit devices per weight 1.0."""
    return load_calibration(shipped_path(technology.name, 8))


@pytest.fixture(scope="session")
def batch(technology, tmp_path_factory):
    """The batch engine; whoever comes first compiles into the user's cache while other processes wait, then they load.

    Every test that runs the engine asks for it, or two processes would compile the same kernels.
    """
    pytest.importorskip("numba")
    from cosim.engines.batch.simulator import BatchSimulator

    elements = Source("i", "i", "0", "a", 0.0), Capacitor("c", "a", "0", 1e-12), Source("v", "v", "b", "0", 1.0)
    bench = Bench(Circuit("compiled", (), elements), technology, Tran(1e-3, 1e-2), (Voltage("b"),))
    with (tmp_path_factory.getbasetemp().parent / "batch.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ran = BatchSimulator().run(bench, 300.0)
    assert not isinstance(ran, Failure), ran.detail
    return BatchSimulator()


@pytest.fixture(scope="session")
def digits_circuit(batch, technology, calibration):
    """`digits_d4` on transistors, with derivatives; it asks for the batch engine."""
    from cosim.engines.batch.gradients import SimulatedCircuit

    network = load_network(trained_network_path("digits_d4"))
    return SimulatedCircuit(design := compile_network(network, technology, calibration), design.nominal)


@pytest.fixture(scope="session")
def late():
    """The module of tests/toys/late.py."""
    spec = spec_from_file_location("late", Path(__file__).parent / "toys" / "late.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def make_network():
    """`random_network` below."""
    return random_network


@pytest.fixture(scope="session")
def run_bench(technology: Technology):
    """(circuit, analysis, save, corner) -> waveforms at precise options; a failed run fails with ngspice's words."""

    def run(circuit: Circuit, analysis: str, save: str, corner: str = "tt"):
        options = format_options(PRECISE, technology)
        waves = run_deck(format_deck(circuit, at(technology, corner), options, analysis, save))
        assert not isinstance(waves, Failure), waves.detail
        return waves

    return run


BROWSER_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--enable-logging=stderr", "--v=0",
)  # fmt: skip


SESSION = """
import sys
import numpy as np
from cosim.engines.ngspice.library import find_ngspice_library
from cosim.engines.ngspice.server import Session
session = Session(str(find_ngspice_library()))
exec(sys.stdin.read())
np.savez(sys.argv[1], **found)
print("\\n".join(session.output))
"""


@pytest.fixture
def in_ngspice(tmp_path):
    """(lines that use `session` and set `found`) -> (`found`, what ngspice said), in a process that stands where the
    test does."""

    def run(lines):
        command = [sys.executable, "-W", "ignore", "-c", SESSION, str(tmp_path / "found.npz")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        done = subprocess.run(command, input=lines, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        with np.load(tmp_path / "found.npz") as found:
            return dict(found), done.stdout.splitlines()

    return run


@pytest.fixture(scope="session")
def make_store():
    """(folder, trial, specs) -> nothing: a finished run of chips with all that a report needs, made in this process.

    `change`: what becomes of each record before it is kept.
    """

    def make(folder, trial: Trial, *specs: str, change=lambda record: record) -> None:
        wanted = [parse_spec(text) for text in specs] or [default_spec(trial)]
        with open_store(folder, run_settings(trial)) as store:
            keep_trial(folder, trial, trial.design.technology.name)

            def execute(numbers):
                return map(change, run_chips(trial, tuple(numbers)))

            run_montecarlo(trial, store, execute, wanted, None, lambda *_: None)

    return make


@dataclass(frozen=True)
class Done:
    """What `cosim ...` ended with and printed, in the words of subprocess."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture(scope="session")
def cosim_in():
    """(folder, arguments) -> how `cosim ...` ended in that folder, in this process; for fixtures of modules, too."""

    def run(folder, *arguments):
        out, err, before, code = StringIO(), StringIO(), sys.argv, 0
        sys.argv = ["cosim", *map(str, arguments)]
        try:
            with chdir(folder), redirect_stdout(out), redirect_stderr(err):
                cosim.cli.main()
        except SystemExit as error:
            code = error.code or 0
        finally:
            sys.argv = before
        assert "Traceback" not in err.getvalue(), err.getvalue()
        return Done(code, out.getvalue(), err.getvalue())

    return run


@pytest.fixture
def cosim_main(monkeypatch, capfd):
    """(arguments) -> (exit code, stdout, stderr) of `cosim ...` through its entry point, in this process."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["cosim", *map(str, arguments)])
        try:
            cosim.cli.main()
            code = 0
        except SystemExit as error:
            code = error.code or 0
        found = capfd.readouterr()
        assert "Traceback" not in found.err
        return code, found.out, found.err

    return run


@pytest.fixture(scope="module")
def tiny(tmp_path_factory, make_network):
    """Folder with net.npz, one layer of three cells, and data.npz, 5 samples of 3 steps."""
    folder = tmp_path_factory.mktemp("tiny")
    network = make_network(26, widths=(3,), outputs=2, alphas=(1.0,))
    save_checkpoint(folder / "net.npz", network)
    rng = np.random.default_rng(3)
    np.savez(folder / "data.npz", x_test=rng.uniform(size=(5, 3, 3)), y_test=np.array([0, 1, 1, 0, 1]))
    return folder


@pytest.fixture
def cosim_process():
    """(arguments, environment) -> (exit code, stdout, stderr) of `cosim ...` in a process of its own."""

    def run(*arguments, **environment):
        done = subprocess.run(
            [sys.executable, "-c", "from cosim.cli import main; main()", *map(str, arguments)],
            capture_output=True,
            text=True,
            env={**os.environ, **environment},
        )
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture
def runner() -> CliRunner:
    return CliRunner()


@pytest.fixture
def browse(tmp_path):
    """(arguments) -> the finished process of a browser in a profile of its own; skips where none is installed."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no chromium is installed")

    def run(*arguments):
        command = [browser, *BROWSER_FLAGS, f"--user-data-dir={tmp_path / 'profile'}", *map(str, arguments)]
        environment = {**os.environ, "TZ": "UTC"}
        return subprocess.run(command, capture_output=True, text=True, timeout=200, env=environment, check=True)

    return run


EMPTY_PICTURES = {
    "svg": b"<?xml version='1.0'?>\n<svg xmlns='http://www.w3.org/2000/svg'/>\n",
    "png": b"\x89PNG\r\n\x1a\n",
}


@contextmanager
def empty_pictures():
    """Pictures of pages, and files of `save_figure`, are drawn up but not rendered, which is half of a small run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cosim.results.figures.figure_bytes", lambda figure, kind: EMPTY_PICTURES[kind])
        yield


@pytest.fixture
def unrendered():
    """`empty_pictures` in a test that looks at none; tests/results renders pages, sweep and explore their files."""
    with empty_pictures():
        yield


@pytest.fixture(scope="module")
def unrendered_module():
    """`empty_pictures` in a whole file, the fixtures of its module among it."""
    with empty_pictures():
        yield


@pytest.fixture
def file_size_limit():
    """(bytes) -> context in which no file of this process can grow beyond that: a disk that fills."""

    @contextmanager
    def limit(size: int):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return limit


@pytest.fixture
def calls(monkeypatch):
    """A list that fills with ("fsync" or "replace", inode) of what happens to files and folders, in order."""
    found: list[tuple[str, int]] = []
    fsync, replace = os.fsync, os.replace

    def logged_fsync(handle):
        found.append(("fsync", os.fstat(handle).st_ino))
        fsync(handle)

    def logged_replace(source, target):
        found.append(("replace", os.stat(source).st_ino))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", logged_fsync)
    monkeypatch.setattr(os, "replace", logged_replace)
    return found


def random_network(
    seed: int,
    kind: str = "first",
    hidden: int = 0,
    widths: tuple[int, ...] = (5, 2),
    features: int = 3,
    outputs: int = 7,
    pooling: str = "mean",
    alphas: tuple[float, ...] = (0.5, 1.0, 1.5),
) -> Network:
    """A network whose weights round exactly to 1/8: weights on 1/4, alpha on 1/2, so the fold W alpha is on 1/8, too.

    kind: first, signed or signed_input. Each recurrent layer reads the input (or the ReLU layer) and all earlier
    layers; the readout reads all recurrent layers. Thresholds are off the grid, so no candidate stands on one.
    """
    rng = np.random.default_rng(seed)

    def quarters(*shape: int) -> np.ndarray:
        return rng.integers(-5, 6, shape) / 4.0

    def eighths(*shape: int) -> np.ndarray:
        return rng.integers(-4, 5, shape) / 8.0

    layers: list[Layer] = []
    known = {"input": features}
    if hidden:
        layers.append(ReluLayer("hidden", ("input",), quarters(hidden, features), eighths(hidden)))
        known = {"hidden": hidden}
    for k, width in enumerate(widths):
        name, sources, columns = f"layer{k}", tuple(known), sum(known.values())
        alpha = rng.choice(alphas, width)
        arrays = quarters(width, columns), eighths(width)
        if kind == "first":
            low = rng.uniform(0.11, 0.31, width)
            layers.append(FirstQuadrantLayer(name, sources, *arrays, low, low + rng.uniform(0.15, 0.45, width), alpha))
        elif kind == "signed":
            layers.append(SignedLayer(name, sources, *arrays, rng.uniform(0.1, 0.6, width), alpha))
        else:
            weight_beta = rng.integers(-2, 3, (width, columns)) / 4.0
            layers.append(SignedLayer(name, sources, *arrays, eighths(width), alpha, weight_beta))
        known[name] = width
    sources = tuple(layer.name for layer in layers if layer.name != "hidden")
    readout = Readout(sources, quarters(outputs, sum(widths)), eighths(outputs), pooling)
    encoding = InputEncoding(np.zeros(features), np.ones(features))
    labels = tuple(f"class {k}" for k in range(outputs))
    return Network(encoding, tuple(layers), readout, "made up", labels)
