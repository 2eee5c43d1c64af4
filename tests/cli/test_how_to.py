"""Every command of README, Start and How to runs, made smaller: what the pages tell people to type works."""

import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("numba")

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *(f"docs/{path.parent.name}/{path.name}" for folder in ("start", "how-to")
                        for path in sorted((ROOT / "docs" / folder).glob("*.md")))]  # fmt: skip
SMALLER = (  # what makes a command short; the last that is given counts
    (r"^(train|automaton --train)\b", "--iterations 40"),
    (r"^(montecarlo|datasheet)\b", "--chips 6"),
    (r"^datasheet\b", "--audit 1"),
    (r"^montecarlo\b.*--contributions", "--chips 20"),
    (r"^trim\b", "--chips 4 --bits 1"),
    (r"^(montecarlo|trim)\b(?!.*--data)", "--samples 20"),
    (r"^(compare|simulate(?!.*--sample )|power)\b", "--samples 2"),
    (r"^(compare|montecarlo)\b.*(--engine batch|--transistors)", "--audit 0"),
    (r"^explore\b", "--trials 1 --round 1 --behavioral"),
    (r"^harden\b", "--iterations 20 --area-max 1 --behavioral --chips 6 --samples 20 --yield 0.1"),
    (r"^characterize ladder\b", "--sequences 1 --steps 3 --rungs 2"),
    (r"^demo\b", ""),
)
# What needs more than this checkout: kits, data sets, a device, another machine; and what takes minutes however small.
ELSEWHERE = re.compile(
    r"gf180mcu|sky130|my180|speech_commands|--data sets|vacask|cuda|NETWORK|TASK|FILE|--dask|^merge|RUN_A|net\.pt|--pvt"
    r"|^sweep|^signoff|^calibrate|^reproduce|^backbone|kws|plan\.toml|specs\.toml|--cells 16|words\.pt|parity\.json"
    r"|^automaton model|mine\.npz|runs/one"
)


def commands(page):
    """The commands of a page's indented blocks, in their order, as words."""
    text = "\n".join(re.findall(r"^ {4}\s*(?:\$ )?(.*)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE))
    lines = re.findall(r"^(?:\.venv/bin/)?cosim ([a-z][^;&\n]*)", re.sub(r"\\\n\s*", " ", text), re.MULTILINE)
    return [words for line in lines if (words := shlex.split(line, comments=True)) and not ELSEWHERE.search(line)]


def smaller(words):
    """A command on fewer chips, samples and iterations; options of its own stay."""
    line, found = shlex.join(words), list(words)
    for pattern, options in SMALLER:
        if re.search(pattern, line):
            for option, value in re.findall(r"(--\S+)(?: (\d\S*))?", options):
                while option in found:
                    place = found.index(option)
                    del found[place : place + (2 if value else 1)]
                found += [option, value] if value else [option]
    return found


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("models", "netlists"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    for script in re.findall(
        r"`(\w+\.(?:py|toml))`:\n\n((?: {4}.*\n|\n)+)", "".join((ROOT / page).read_text() for page in PAGES)
    ):
        (tmp_path / script[0]).write_text(re.sub(r"^ {4}", "", script[1], flags=re.MULTILINE))
    return tmp_path


def test_there_are_commands_to_run():
    counts = {page: len(commands(page)) for page in PAGES}
    assert sum(counts.values()) > 60 and sum(count > 0 for count in counts.values()) > 20


@pytest.mark.slow
@pytest.mark.ngspice
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)])
def test_the_commands_of_a_page_run(page, here, cosim_main):
    """One after the other in one folder, as a reader types them; scripts that the page has are run first."""
    import subprocess
    import sys

    for script in sorted(here.glob("*.py")):
        if f"python {script.name}" in (ROOT / page).read_text(encoding="utf-8"):
            subprocess.run([sys.executable, script.name], check=True)
    for words in commands(page):
        code, out, err = cosim_main(*smaller(words))
        assert code == 0 and (out or err), (words, out[-500:], err[-500:])
