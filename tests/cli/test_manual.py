"""docs/cli.md is what scripts/write_cli_docs.py makes of it, and help fits a screen."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from cosim.cli import VERBS
from cosim.cli.help import GroupedOption

ROOT = Path(__file__).resolve().parents[2]
SPEC = spec_from_file_location("write_cli_docs", ROOT / "scripts" / "write_cli_docs.py")
SCRIPT = module_from_spec(SPEC)
SPEC.loader.exec_module(SCRIPT)
PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
COMMANDS = [" ".join(words) for words in SCRIPT.commands()]


def test_the_manual_is_written_by_the_script():
    assert SCRIPT.format_manual_page(PAGE) == PAGE, "run: python scripts/write_cli_docs.py docs/cli.md"


def test_what_someone_changed_in_a_block_is_written_again():
    """The prose around it stays."""
    assert "Every verb answers" in PAGE
    spoilt = PAGE.replace("Print what is in a checkpoint", "Print").replace("Every verb answers", "Each answers")
    assert SCRIPT.format_manual_page(spoilt) == PAGE.replace("Every verb answers", "Each answers")


def test_a_verb_without_a_block_is_named():
    with pytest.raises(SystemExit, match=r"needs a heading and an indented line 'Usage: cosim VERB ' for \['doctor'\]"):
        SCRIPT.format_manual_page(PAGE.replace("    Usage: cosim doctor", ""))


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_a_screen(cosim_main, monkeypatch, command):
    """About 40 lines of 80 columns: a terminal of a laptop; those of a verb with 20 options of its own take 43."""
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = cosim_main(*command.split(), "--help")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) <= 43


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_named_and_stands_in_full_with_help_all(cosim_main, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    words = command.split()
    with SCRIPT.context_of(words) as ctx:
        options = [param for param in ctx.command.get_params(ctx) if param.param_type_name == "option"]
        brief = ctx.get_help()
    for option in options:
        assert re.search(rf"(?<![\w-]){max(option.opts, key=len)}\b", brief), option.opts
    if any(isinstance(option, GroupedOption) for option in options):
        code, out, _ = cosim_main(*words, "--help-all")
        assert code == 0
        heads = re.findall(r"^  (-.*)", out, re.MULTILINE)
        assert len(heads) == len(options)
        assert "More options" not in out


def test_every_verb_is_there():
    assert {command.split()[0] for command in COMMANDS} == set(VERBS)
