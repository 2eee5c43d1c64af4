"""The pages of the manual that come from the code are those of this code, and help fits a screen."""

import re
import subprocess
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from cosim.cli import VERBS
from cosim.technology.catalog import technology_names

ROOT = Path(__file__).resolve().parents[2]
SPEC = spec_from_file_location("write_reference", ROOT / "scripts" / "write_reference.py")
SCRIPT = module_from_spec(SPEC)
SPEC.loader.exec_module(SCRIPT)
REFERENCE = ROOT / "docs" / "reference"
PAGE = (REFERENCE / "cli.md").read_text(encoding="utf-8")
COMMANDS = [" ".join(words) for words in SCRIPT.commands()]


def test_the_manual_is_written_by_the_script():
    again = "run: python scripts/write_reference.py docs"
    assert SCRIPT.format_cli_page(PAGE) == PAGE, again
    assert SCRIPT.files_page() == (REFERENCE / "files.md").read_text(encoding="utf-8"), again
    assert SCRIPT.python_page() == (REFERENCE / "python-api.md").read_text(encoding="utf-8"), again
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    assert SCRIPT.index_page(menu, ROOT / "docs") == (ROOT / "docs" / "llms.txt").read_text(encoding="utf-8"), again


def test_what_someone_changed_in_a_block_is_written_again():
    """The prose around it stays."""
    assert "This page lists" in PAGE
    spoilt = PAGE.replace("Print what is in a checkpoint", "Print").replace("This page lists", "Here stands")
    assert SCRIPT.format_cli_page(spoilt) == PAGE.replace("This page lists", "Here stands")


def test_a_verb_without_a_block_is_named():
    with pytest.raises(SystemExit, match=r"needs a heading and an indented line 'Usage: cosim VERB ' for \['doctor'\]"):
        SCRIPT.format_cli_page(PAGE.replace("    Usage: cosim doctor", ""))


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_a_screen(cosim_main, monkeypatch, command):
    """About 48 lines of 80 columns: a terminal of a laptop."""
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = cosim_main(*command.split(), "--help")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) <= 48


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_named_and_stands_in_full_with_help_all(cosim_main, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    words = command.split()
    with SCRIPT.context_of(words) as ctx:
        options = [param for param in ctx.command.get_params(ctx) if param.param_type_name == "option"]
        brief = ctx.get_help()
    for option in options:
        assert re.search(rf"(?<![\w-]){max(option.opts, key=len)}\b", brief), option.opts
    if any(getattr(option, "group", None) for option in options):
        code, out, _ = cosim_main(*words, "--help-all")
        assert code == 0
        heads = re.findall(r"^  (-.*)", out, re.MULTILINE)
        assert len(heads) == len(options)
        assert "More options" not in out


def test_every_verb_is_there():
    assert {command.split()[0] for command in COMMANDS} == set(VERBS)


SECTIONS = ("start", "how-to", "explanation", "reference", "papers", "develop")
PAGES = sorted(path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md"))
TABLES = {"papers/tables.md"}  # a row of figures for each network of each paper's table
MADE = {"reference/cli.md", "reference/files.md", "reference/python-api.md"}  # from the code
MOST_WORDS, LONGEST, LONGEST_HOW_TO = 60_000, 1_500, 900


def count_words(page):
    """Words of a page; a bar of a table is none."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return len([word for word in text.split() if word.strip("|-")])


def test_the_manual_can_be_read():
    written = {page.as_posix(): count_words(page) for page in PAGES if page.as_posix() not in MADE | TABLES}
    assert {
        page: count for page, count in written.items() if count > LONGEST and not page.startswith("reference/")
    } == {}
    assert {
        page: count for page, count in written.items() if count > LONGEST_HOW_TO and page.startswith("how-to/")
    } == {}
    assert sum(written.values()) <= MOST_WORDS


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_file_that_a_page_names_is_there(page):
    """Files of the project as code with a folder: in the checkout, in the package or among the tests."""
    named = re.findall(r"`((?:[a-z_]+/)+\w+\.(?:py|ipynb))`", (ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert [name for name in named if not any((ROOT / at / name).exists() for at in ("", "cosim", "tests"))] == []


def test_every_page_is_in_a_section_and_in_the_menu():
    assert {page.parts[0] for page in PAGES} == {*SECTIONS, "index.md"}
    listed = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(page.as_posix() for page in PAGES)


def test_the_manual_is_built_without_a_broken_link():
    """Strictly: a page, a picture or an anchor that is not there ends it. The site needs nothing from elsewhere."""
    pytest.importorskip("zensical")
    done = subprocess.run(
        [sys.executable, "scripts/build_manual.py"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "site").rglob("*.html")]
    assert len(pages) > len(PAGES) + 15  # a page of names for each folder of the package
    assert not any(re.search(r'<(script|link)[^>]* (src|href)="http', page) for page in pages)


def test_every_json_key_says_what_it_holds():
    """A type that the generator cannot name, `any`, would be that of a key that may hold anything."""
    assert "| any" not in (ROOT / "docs/reference/files.md").read_text(encoding="utf-8")


def technology_files():
    """Name and content of each technology's file; one that only has another supply has no column of its own."""
    for name in technology_names():
        content = tomllib.loads((ROOT / f"models/devices/{name}.toml").read_text(encoding="utf-8"))
        if "base" not in content:
            yield name, content


def test_supplies_and_spreads_are_those_of_the_technologies():
    text = (ROOT / "docs/reference/technologies.md").read_text(encoding="utf-8")
    supplies, spreads = (
        re.search(rf"^\| {row}.*$", text, re.MULTILINE) for row in ("supply: nominal", "`spread_vt` of n")
    )
    for place, (_, content) in enumerate(technology_files(), start=2):
        shown = f"{content['supply']:g}, {content['supply_max']:g} V"
        assert supplies is not None and supplies.group().split("|")[place].strip() == shown
        shown = ", ".join(f"{1e3 * content[table]['spread_vt']:g}" for table in ("nfet", "pfet"))
        assert spreads is not None and spreads.group().split("|")[place].strip() == f"{shown} mV"


def test_the_table_of_sizes_is_that_of_the_technologies():
    """W and L of every role and the coefficients of mismatch, as the files of the technologies have them."""
    text = (ROOT / "docs/reference/cells.md").read_text(encoding="utf-8")
    for place, (name, content) in enumerate(technology_files(), start=3):
        for role, size in content["sizing"].items():
            pairs = [size, size["cascode"]] if "cascode" in size else [size]
            shown = " under ".join(f"{1e6 * one['w']:g} x {1e6 * one['l']:g}" for one in pairs)
            row = re.search(rf"^\| `{role}` .*$", text, re.MULTILINE)
            assert row and row[0].split("|")[place].strip() == shown, (name, role)
        for kind in ("nfet", "pfet"):
            device = content[kind]
            assert f"`{device['device']}`" in text
            row = re.search(rf"^\| a_vt, a_beta \| of one {kind[0]} device.*$", text, re.MULTILINE)
            shown = f"{1e9 * device['a_vt']:g}, {1e8 * device['a_beta']:g}"
            assert row and row[0].split("|")[place].strip() == shown, (name, kind)
