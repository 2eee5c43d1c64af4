"""Write requirements.lock: what cosim-analog[all] needs, pinned to what is installed in the running environment.

To move to newer releases, `pip install -U` them into .venv first. Left out on purpose: local version labels such as
`+cpu`, so that any build of the same release satisfies the pin, and the CUDA packages that only one build of torch
wants. A direct dependency that has no wheels for other platforms keeps its condition.
"""

import argparse
import re
import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HEADER = """\
# Every dependency of every extra, pinned. Written by `make lock` from the packages installed in .venv; do not edit.
# Installed by `make venv`, on Python 3.11 or newer; the few back-ports that only a newer Python wants are left to pip.
"""
ROOT = "cosim-analog"
ACCELERATOR_PACKAGES = ("nvidia-", "cuda-", "triton")
Visited = set[tuple[str, frozenset[str]]]


def collect_pins(name: str, extras: frozenset[str], pins: dict[str, str], visited: Visited) -> None:
    """Add `name==version` of everything that the distribution needs here, dependencies of dependencies included."""
    if (name, extras) in visited:
        return
    visited.add((name, extras))
    for text in metadata.requires(name) or ():
        requirement = Requirement(text)
        environments = [{"extra": extra} for extra in ("", *extras)]
        if requirement.marker and not any(requirement.marker.evaluate(environment) for environment in environments):
            continue
        needed = canonicalize_name(requirement.name)
        if needed.startswith(ACCELERATOR_PACKAGES):
            continue
        if needed != ROOT:
            pins[needed] = metadata.version(needed).partition("+")[0] + _platform(requirement, name)
        collect_pins(needed, frozenset(requirement.extras), pins, visited)


def _platform(requirement: Requirement, wanted_by: str) -> str:
    """`; sys_platform == ...` of a direct dependency that has such a condition."""
    condition = re.sub(r"^\(?(.*?)\)? and extra == .*$", r"\1", str(requirement.marker or ""))
    return f"; {condition}" if wanted_by == ROOT and "platform" in condition else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    output = parser.parse_args().output
    pins: dict[str, str] = {}
    try:
        collect_pins(ROOT, frozenset({"all"}), pins, set())
    except metadata.PackageNotFoundError as error:
        sys.exit(f"{error.name} must be installed before it can be pinned; run: make venv")
    output.write_text(HEADER + "".join(f"{name}=={version}\n" for name, version in sorted(pins.items())))


if __name__ == "__main__":
    main()
