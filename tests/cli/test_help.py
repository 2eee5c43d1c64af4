"""Help: every verb has it, and asking for it loads nothing heavy."""

import ast
import subprocess
import sys

import pytest

import cosim
from cosim.cli import VERBS

HEAVY = {"torch", "matplotlib", "PySpice", "scipy", "numpy", "networkx", "sklearn"}


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


def test_unknown_verb_and_option(cosim_main):
    code, _, err = cosim_main("fly")
    assert (code, "No such command 'fly'" in err) == (2, True)
    code, _, err = cosim_main("compile", "net.npz", "--wings")
    assert (code, "No such option" in err) == (2, True)
