"""What README and manual tell people to type does what they say."""

import pkgutil
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import click
import pytest

import cosim
from cosim.base.resources import trained_network_path
from cosim.cli import VERBS, _cosim

pytestmark = pytest.mark.usefixtures("unrendered_module")
ROOT = Path(__file__).resolve().parents[2]
OWN, DATA, PYTHON = (f"docs/how-to/{name}.md" for name in ("bring-my-network", "train-on-my-data", "python"))
MANUAL = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
PAGES = ["README.md", *MANUAL]
POWER = re.compile(r"[\d.]+(?= nW)")


def blocks(page):
    """The indented blocks of a page, dedented."""
    found = re.findall(r"(?:^(?: {4}.*)?\n)+", (ROOT / page).read_text(), re.MULTILINE)
    return [dedent(block).strip("\n") for block in found if block.strip()]


def block_with(page, words):
    """The one block of a page that holds these words."""
    (found,) = (block for block in blocks(page) if words in block)
    return found


def commands(page):
    """Arguments of every cosim command in a page's blocks; a letter that stands for a number is 0, a variable 1."""
    text = re.sub(r"\\\n|[][]", " ", "\n".join(blocks(page)))  # what is in brackets may be left out
    text = re.sub(r"\$\w+", "1", text)
    lines = re.findall(rf"(?:^|; )(?:\.venv/bin/)?cosim ((?:{'|'.join(VERBS)})\b[^;&\n]*)", text, re.MULTILINE)
    return [
        ["1" if len(part) == 1 and part.isupper() else part for part in shlex.split(line, comments=True)]
        for line in lines
    ]


COMMANDS = [(page, tuple(arguments)) for page in PAGES for arguments in commands(page)]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder with `models` as in a checkout; docs are followed from there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").symlink_to(ROOT / "models")
    return tmp_path


@pytest.fixture
def python(here, capfd):
    """(text) -> what a script of this text prints, in this process."""

    def run(text):
        (here / "script.py").write_text(text)
        runpy.run_path("script.py", run_name="__main__")
        found = capfd.readouterr()
        assert found.err == ""
        return found.out

    return run


@pytest.fixture
def python_process(here):
    """(text) -> what a script of this text prints, in a process of its own."""

    def run(text):
        (here / "script.py").write_text(text)
        done = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run


def assert_printed(found, shown):
    """The same words; power within 5 %, because releases of ngspice differ in device models and step control."""
    assert POWER.sub("?", found) == POWER.sub("?", shown)
    numbers = [[float(number) for number in POWER.findall(text)] for text in (found, shown)]
    assert numbers[0] == pytest.approx(numbers[1], rel=0.05)


def test_commands_are_found():
    assert len(COMMANDS) > 40
    assert {arguments[0] for _, arguments in COMMANDS} > {"train", "compile", "simulate", "compare", "montecarlo"}


@pytest.mark.parametrize(("page", "arguments"), COMMANDS)
def test_every_command_of_the_manual_is_one(page, arguments):
    """Its options and their values exist; nothing is run."""
    with click.Context(_cosim, **_cosim.context_settings) as above:  # a verb keeps the help option of its first context
        name, verb, rest = _cosim.resolve_command(above, list(arguments))
        with verb.make_context(name, rest, parent=above) as context:
            if isinstance(verb, click.Group):
                name, inner, rest = verb.resolve_command(context, [*context._protected_args, *context.args])
                inner.make_context(name, rest, parent=context).close()


def names_shown(text):
    """What a page or a notebook imports from cosim, and what it names in backticks, as dotted names."""
    for module, names in re.findall(r"from (cosim[\w.]*) import ([\w, ]+)", text):
        yield from (f"{module}.{name.split(' as ')[0].strip()}" for name in names.split(","))
    yield from re.findall(r"`(cosim(?:\.\w+)+)", text)


@pytest.mark.parametrize(
    "page", [*PAGES, *sorted(f"notebooks/{path.name}" for path in (ROOT / "notebooks").glob("*.ipynb"))]
)
def test_every_name_that_is_shown_is_one(page):
    """So that a page does not go on showing a class that was renamed or a module that has moved."""
    pytest.importorskip("torch")
    for name in names_shown((ROOT / page).read_text()):
        pkgutil.resolve_name(name)


def example(page, place=0):
    """A block of Python of a page, by default its first."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)[place]


@pytest.mark.ngspice
def test_readme_example(python_process):
    """With one digit instead of two, 8 chips instead of 100, and the smaller network."""
    pytest.importorskip("torch")
    text = example("README.md")
    assert "all 360 test digits" in text and len(text.splitlines()) <= 10
    shown = re.fullmatch(r"(?s).*/(\w+)\.pt.*# (\d+) transistors\n.*samples=2.*chips=100.*", text)
    compiled = cosim.load(trained_network_path(shown[1])).compile("generic180")
    assert f" {shown[2]} transistors" in " ".join(str(compiled).split())
    shorter = {shown[1]: "digits_d4", "samples=2": "samples=1", "chips=100": "chips=8"}
    for long, short in shorter.items():
        text = text.replace(long, short)
    printed = python_process(text)
    plain = " ".join(printed.split())
    assert "1 test samples, each by software" in plain and "0 simulations failed" in plain
    assert len(re.findall(r"8 chips with [\w ]+, each on 360 test samples\..* none failed", plain)) == 1
    assert "digits_d4 on generic180" in plain and "transistors of generic180" in plain


@pytest.mark.slow
@pytest.mark.ngspice
def test_page_from_python(python):
    pytest.importorskip("torch")
    printed = python(example(PYTHON))
    plain = " ".join(printed.split())
    assert "each on 360 test samples. Engine: behavioral; none failed." in plain


@pytest.mark.slow
@pytest.mark.ngspice
def test_a_training_loop_of_ones_own(python):
    """About 20 s: 600 iterations and four samples, then ten through transistors, after which decisions are right."""
    pytest.importorskip("torch")
    page = "docs/how-to/own-training-loop.md"
    through = example("docs/how-to/train-through-transistors.md")
    judged = "print((run_reference(export(parts, encoding), x_test).decisions == y_test).mean() > 0.95)"
    printed = python(f"{example(page)}\n{through}\n{judged}")
    assert printed.strip() == f"{block_with(page, 'circuit: 100')}\nTrue"


def test_a_problem_for_the_loop_of_the_package(python):
    pytest.importorskip("torch")
    assert python(example("docs/reference/training.md")) == "3.00\n"


def test_arrays_of_another_framework(cosim_main, python):
    python(block_with("docs/how-to/exchange.md", 'np.savez("dense.npz"'))
    code, out, _ = cosim_main("inspect", "dense.npz")
    assert code == 0
    assert re.findall(r"^(layer\d) +([\w-]+) ", out, re.MULTILINE) == [("layer0", "relu"), ("layer1", "first-quadrant")]


@pytest.mark.ngspice
def test_getting_started(cosim_main, here):
    """With one digit instead of ten, and the smaller network."""
    pytest.importorskip("torch")
    typed = [list(arguments) for arguments in commands("docs/start/first-run.md")]
    assert [arguments[0] for arguments in typed] == ["inspect", "compile", "compare", "montecarlo", "train", "compare"]
    for arguments in typed[:4]:
        code, out, err = cosim_main(
            *(argument.replace("10", "1").replace("300", "5").replace("_d8", "_d4") for argument in arguments)
        )
        assert (code, bool(out)) == (0, True), err
    assert (here / "netlist" / "network.sp").is_file()
    assert (here / "runs" / "first" / "report.html").is_file()


@pytest.mark.ngspice
def test_a_network_of_ones_own(cosim_main, python):
    pytest.importorskip("torch")
    assert python(block_with(OWN, 'torch.save(network.state_dict(), "own.pt")')) == ""
    typed = [shlex.split(line)[1:] for line in block_with(OWN, "python own.py").splitlines()[1:]]
    assert [arguments[0] for arguments in typed] == ["inspect", "compile", "compare"]
    results = [cosim_main(*arguments) for arguments in typed]
    assert [code for code, _, _ in results] == [0, 0, 0]
    shown = block_with(OWN, "own on generic180: ")  # the page shows where the output begins
    printed = results[-1][1].strip("\n").splitlines()[: len(shown.splitlines())]
    assert_printed("\n".join(printed), shown)


@pytest.mark.ngspice
def test_a_full_checkpoint_of_ones_own(cosim_main, python):
    python(block_with(OWN, 'save_checkpoint("signed.npz", network)'))
    typed = shlex.split(block_with(OWN, "python signed.py").splitlines()[1])[1:]
    code, out, _ = cosim_main(*typed)
    assert code == 0
    transistors, states = re.search(
        r"runs (\d+) transistors and ends with all (\d+) states equal", (ROOT / OWN).read_text()
    ).groups()
    assert f"{transistors} transistors" in out
    assert f"100.00 %  of {states} states equal the software's" in out


@pytest.mark.ngspice
def test_the_library_from_python(python):
    pytest.importorskip("torch")
    assert_printed(python(block_with(PYTHON, "simulate_samples(design")).strip(), block_with(PYTHON, "(8, 8) 2"))


@pytest.mark.slow
@pytest.mark.ngspice
def test_data_of_ones_own(cosim_main, python):
    pytest.importorskip("torch")
    python(block_with(DATA, 'np.savez("pulses.npz"'))
    training, comparison = (shlex.split(line)[1:] for line in block_with(DATA, "python pulses.py").splitlines()[1:])
    code, out, _ = cosim_main(*training)
    assert code == 0 and "accuracy 100.0 %" in out.replace("0%", "0 %")
    assert cosim_main(*comparison)[0] == 0
    code, out, _ = cosim_main(*shlex.split(block_with(DATA, "-o pulses-yield"))[1:])
    plain = " ".join(out.split())
    assert code == 0 and re.search(r"\b300 chips with [\w ]+, each on 200 test samples\..* none failed", plain)
