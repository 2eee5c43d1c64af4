"""Every command of docs/start/questions.md runs and leaves the picture that stands under it."""

import re
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = spec_from_file_location("draw_gallery", ROOT / "scripts" / "draw_gallery.py")
SCRIPT = module_from_spec(SPEC)
SPEC.loader.exec_module(SCRIPT)
ANSWERS = {Path(one.folder).name: one for one in SCRIPT.read_answers((ROOT / "docs/start/questions.md").read_text())}
SMALLER = (  # what a command may be cut to and still draw its picture
    (r"--chips \d+", "--chips 60 --samples 60"),
    (r"--bits \S+", "--bits 2"),
    (r"area=\S+", "area=0.5,1"),
    (r"temp=\S+", "temp=27 --samples 4"),
    (r"t-step=\S+", "t-step=5m,10m --samples 4"),
    (r"--samples 100", "--samples 4"),
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "models").symlink_to(ROOT / "models")
    return tmp_path


def cut(one):
    """The same command on fewer chips, samples or points; the page's lines are those of the whole one."""
    command = " ".join(one.arguments)
    for pattern, smaller in SMALLER:
        command = re.sub(pattern, smaller, command)
    return replace(one, arguments=tuple(command.split()), lines=())


def test_there_are_six_questions_with_a_picture_each():
    assert len(ANSWERS) == 6
    for one in ANSWERS.values():
        content = (ROOT / "docs" / one.picture).read_bytes()
        assert content.startswith((b"<?xml", b"\x89PNG")) and len(content) > 5_000, one.question


def test_three_sentences_each():
    for section in (ROOT / "docs/start/questions.md").read_text().split("\n## ")[1:]:
        prose = section.split(")\n\n", 1)[1]
        ends = re.findall(r"[.:](?=\s|$)", re.sub(r"`[^`]*`", "", prose))
        assert 3 <= len(ends) <= 5, section


@pytest.mark.slow
@pytest.mark.ngspice
@pytest.mark.parametrize("name", ANSWERS)
def test_a_smaller_run_draws_the_picture(name, folder):
    pytest.importorskip("numba")
    assert len(SCRIPT.answer(cut(ANSWERS[name]), folder)) > 5_000


@pytest.mark.slow
@pytest.mark.ngspice
@pytest.mark.parametrize("name", ANSWERS)
def test_the_command_prints_the_lines_of_the_page(name, folder):
    pytest.importorskip("numba")
    assert SCRIPT.answer(ANSWERS[name], folder)


def test_a_section_without_a_picture_is_named():
    with pytest.raises(ValueError, match=r"Why\?: needs a cosim command with -o and a picture"):
        SCRIPT.read_answers("# Page\n\n## Why?\n\n    cosim compile models/trained/digits_d4.pt -o a\n")
