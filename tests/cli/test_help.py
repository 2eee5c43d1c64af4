"""Help: every verb has it, and asking for it loads nothing heavy."""

import ast
import os
import subprocess
import sys

import pytest

import cosim
from cosim.base.resources import trained_network_path
from cosim.cli import VERBS
from cosim.exchange.checkpoint import load_network, save_checkpoint

HEAVY = {"torch", "matplotlib", "PySpice", "scipy", "numpy", "networkx", "sklearn", "msgspec"}


def test_verbs_are_listed(cosim_main):
    code, out, _ = cosim_main("--help")
    assert code == 0
    for verb, text in VERBS.items():
        assert f"  {verb}" in out
        assert text.split(",")[0] in " ".join(out.split())


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(cosim_main, verb):
    code, out, _ = cosim_main(verb, "--help")
    assert code == 0
    assert out.startswith("Usage: cosim ")
    assert "--help" in out


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        (["--help"], set()),
        (["--version"], set()),
        (["compile", "--help"], {"numpy"}),
        (["compare", "--help"], {"numpy"}),
    ],
)
def test_help_loads_nothing_heavy(arguments, allowed):
    code = (
        "import sys\nfrom cosim.cli import main\ntry:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print(sorted({HEAVY!r} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.returncode == 0
    assert set(ast.literal_eval(done.stderr)) <= allowed


def test_version(cosim_main):
    assert cosim_main("--version")[1] == f"cosim, version {cosim.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["trian"], "no such command 'trian'. Did you mean 'train'? See: cosim --help"),
        (["fly"], "no such command 'fly'. See: cosim --help"),
        (["--wings"], "no such option '--wings' in front of a verb; options come after it. See: cosim --help"),
        (["inspect"], "missing argument 'CHECKPOINT'. See: cosim inspect --help"),
        (["inspect", "a", "b"], "got unexpected extra argument (b). See: cosim inspect --help"),
        (["compare", "a", "--bias", "none"],
         "invalid value for '--bias': 'none' is not one of 'constant', 'reference', 'tracking'. "
         "See: cosim compare --help"),
        (["compile", "a", "--supply", "much"], "--supply must be a number in V such as '1.71' or '900m', not 'much'"),
        (["characterize", "dpi", "--temp", "a"], "--temp must be a number in C such as '60' or '-40', not 'a'"),
        (["characterize", "latch"], "no such command 'latch'. See: cosim characterize --help"),
        (["characterize", "dpi", "-o"], "option '-o' requires an argument. See: cosim --help"),
    ],
)  # fmt: skip
def test_usage_errors_are_one_line_like_all_others(cosim_main, arguments, text):
    assert cosim_main(*arguments) == (2, "", f"cosim: {text}\n")


def test_an_option_that_is_nearly_right(cosim_main):
    code, _, err = cosim_main("compare", "a", "--sample", "3")
    assert (code, err.count("\n")) == (2, 1)
    assert "no such option" in err and "--samples" in err


def test_without_a_verb_the_verbs_are_listed(cosim_main):
    code, _, err = cosim_main()
    assert code == 2
    assert err.startswith("Usage: cosim ") and "  doctor" in err


def test_paths_that_are_no_text_are_printed(tmp_path):
    """On a terminal that takes UTF-8 alone; a path may have any bytes."""
    file = tmp_path / "model\udc80.npz"
    save_checkpoint(file, load_network(trained_network_path("digits_d4")))
    command = [sys.executable, "-m", "cosim", "compile", str(file), "-o", str(tmp_path / "out\udc80")]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "out\\udc80" in done.stdout
