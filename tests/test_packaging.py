"""The project file, the lock and the pinned tools agree, and the lock installs anywhere."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
APART = {"cuda", "tensorboard"}  # for who has a device, or a viewer of curves: neither locked nor in `all`
LOCKED = [text for extra, texts in EXTRAS.items() if extra not in APART for text in texts]
LOCK = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#")]
PINS = {requirement.name: requirement for requirement in map(Requirement, LOCK)}


@pytest.mark.parametrize("line", LOCK)
def test_lock_line_is_a_plain_pin(line):
    """A name and a public version only; behind it on what platforms alone it can be installed, if not on all."""
    assert re.fullmatch(
        r"[a-z0-9-]+==[0-9][0-9a-z.]*(; sys_platform == \"linux\" and platform_machine == \"\w+\")?", line
    )


@pytest.mark.parametrize("name", PINS)
def test_locked_release_installs_on_the_oldest_python(name):
    try:
        supported = metadata.metadata(name).get("Requires-Python")
    except metadata.PackageNotFoundError:
        pytest.skip(f"{name} is not installed here")
    if supported:
        assert "3.11.0" in SpecifierSet(supported), f"{name} wants Python {supported}; lock an older release"


@pytest.mark.parametrize("text", [*PROJECT["dependencies"], *LOCKED])
def test_every_dependency_is_locked_within_its_range(text):
    requirement = Requirement(text)
    if requirement.name == PROJECT["name"]:
        return
    pin = PINS.get(canonicalize_name(requirement.name))
    assert pin is not None, f"{text} is not in requirements.lock; run make lock"
    version = str(pin.specifier).removeprefix("==")
    assert requirement.specifier.contains(version, prereleases=True), (
        f"{text} excludes the locked {version}; run make lock"
    )


def test_all_names_every_extra():
    (requirement,) = map(Requirement, EXTRAS["all"])
    assert requirement.extras == set(EXTRAS) - {"all"} - APART


def test_every_dependency_says_who_needs_it():
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    for text in (text for group in (PROJECT["dependencies"], *EXTRAS.values()) for text in group):
        if not text.startswith(PROJECT["name"]):
            (line,) = (line for line in lines if line.strip().startswith(f'"{text}"'))
            assert re.search(r"# \w+", line), f"{line.strip()} needs a comment that names the module"


def test_hooks_run_the_locked_tools():
    pinned = set(re.findall(r'"([\w-]+)==([\w.]+)"', (ROOT / ".pre-commit-config.yaml").read_text()))
    assert pinned == {("ruff", str(PINS["ruff"].specifier).removeprefix("=="))}
