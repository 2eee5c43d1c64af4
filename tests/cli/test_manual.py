"""docs/cli.md shows every verb's --help as it is."""

import re
from pathlib import Path

import pytest

MANUAL = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text()
LAST = "Show this message and exit."
BLOCKS = re.findall(rf"^    (Usage: cosim ([a-z]+(?: [a-z]+)?) .*?{LAST})$", MANUAL, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("block", "verb"), BLOCKS, ids=[verb for _, verb in BLOCKS])
def test_help(cosim_main, monkeypatch, block, verb):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = cosim_main(*verb.split(), "--help")
    assert code == 0
    assert out[: out.index(LAST) + len(LAST)].splitlines() == [line.removeprefix("    ") for line in block.splitlines()]


def test_every_verb_is_there(cosim_main):
    _, out, _ = cosim_main("--help")
    verbs = set(re.findall(r"^  ([a-z]+)  ", out.partition("Commands:")[2], re.MULTILINE))
    assert verbs
    assert verbs <= {verb.split()[0] for _, verb in BLOCKS}
