"""`cosim doctor`: what is installed, what is missing, and what to type to get it.

Reads package metadata only, so that it answers in a broken installation and imports nothing heavy.
"""

import json
import os
import platform
import re
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from cosim.base.errors import MissingToolError
from cosim.base.version import __version__
from cosim.cli.session import VerbSession
from cosim.cli.verb import Result, switch, verb
from cosim.engines.ngspice.library import MINIMUM_NGSPICE, find_ngspice_library, is_new_enough, ngspice_version
from cosim.engines.vacask.program import vacask_version

DISTRIBUTION = "cosim-analog"
CORE = "core"
EVERYTHING = "all"  # the extra that repeats all the others
REPEATING = ("tensorboard", "cuda")  # extras that bring another one as well: train, batch


@dataclass(frozen=True)
class Dependency:
    """A required package: the group that needs it, the installed version or None, the command that installs it."""

    name: str
    group: str
    version: str | None
    install: str


@dataclass(frozen=True)
class NgspiceStatus:
    """The simulator library: where, which version, and what is wrong with it (None: nothing)."""

    path: str | None
    version: str | None
    problem: str | None


@dataclass(frozen=True)
class VacaskStatus:
    """The second simulator, which `compare --engine vacask` runs: version, or None and how to install it."""

    version: str | None
    problem: str | None


@dataclass(frozen=True)
class Diagnosis:
    """Result of the doctor. `ready` says whether networks can be compiled and simulated."""

    cosim: str
    python: str
    dependencies: tuple[Dependency, ...]
    ngspice: NgspiceStatus
    vacask: VacaskStatus
    pdk_root: str | None
    pdk_kits: tuple[str, ...]
    ready: bool


@dataclass(frozen=True, kw_only=True)
class DoctorOptions:
    """Options of the doctor."""

    as_json: bool = switch("Print the same findings as JSON.", flags=("--json",))


def run(options: DoctorOptions, _session: VerbSession) -> Result:
    """Say what is installed, what is missing and how to install it.

    Exit status 0 when everything that simulation needs is there, 1 otherwise.
    """
    found = diagnose()
    text = json.dumps(asdict(found), indent=2) if options.as_json else format_diagnosis(found)
    return Result(found, lines=[text], fault=None if found.ready else "")


def diagnose() -> Diagnosis:
    """Return what `cosim doctor` finds of the interpreter, the packages, the simulators and the process kits."""
    dependencies = _dependencies()
    ngspice = _ngspice()
    pdk_root = os.environ.get("PDK_ROOT") or None
    core_complete = all(item.version for item in dependencies if item.group == CORE)
    return Diagnosis(
        cosim=__version__,
        python=platform.python_version(),
        dependencies=dependencies,
        ngspice=ngspice,
        vacask=_vacask(),
        pdk_root=pdk_root,
        pdk_kits=_kits(pdk_root),
        ready=core_complete and ngspice.problem is None,
    )


def format_diagnosis(found: Diagnosis) -> str:
    """Format the findings of `cosim doctor` as a table, followed by one command for each thing that is missing."""
    rows = [("cosim", found.cosim, ""), ("Python", found.python, "")]
    rows += [(item.name, item.version or "missing", item.group) for item in found.dependencies]
    rows.append(("libngspice", found.ngspice.version or "missing", found.ngspice.path or ""))
    rows.append(("VACASK", found.vacask.version or "missing", "second simulator, for compare --engine vacask"))
    rows.append(("PDK_ROOT", _pdk_status(found), found.pdk_root or ""))
    left, middle = (max(len(row[column]) for row in rows) for column in (0, 1))
    lines = [f"{name:<{left}}  {status:<{middle}}  {note}".rstrip() for name, status, note in rows]
    repairs = [f"{item.name} ({item.group}): {item.install}" for item in found.dependencies if item.version is None]
    repairs += [problem for problem in (found.ngspice.problem, found.vacask.problem) if problem]
    if repairs:
        lines += ["", "To repair:", *(f"  {repair}" for repair in repairs)]
    verdict = "ready: networks can be compiled and simulated" if found.ready else "not ready to simulate"
    return "\n".join([*lines, "", verdict])


def _pdk_status(found: Diagnosis) -> str:
    if found.pdk_root is None:
        return "not set"
    return ", ".join(found.pdk_kits) or "no kit found"


def _dependencies() -> tuple[Dependency, ...]:
    """Return direct dependencies, each once, under the first group that asks for it; core first, and an extra that
    another one builds on before that one: torch is of `train`, though `tensorboard` brings it as well.

    Those for some platforms only are left out: VACASK, which `_vacask` finds wherever it comes from.
    """
    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return (Dependency(DISTRIBUTION, CORE, None, "python -m pip install -e . (in a checkout), or make venv"),)
    seen: dict[str, Dependency] = {}
    for requirement in sorted(requirements, key=_repeats):
        specifier, _, marker = (part.strip() for part in requirement.partition(";"))
        name = re.split(r"[\[\s<>=!~(]", specifier, maxsplit=1)[0]
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", marker)
        group = extra.group(1) if extra else CORE
        if group != EVERYTHING and name not in seen and "sys_platform" not in marker:
            seen[name] = Dependency(name, group, _installed(name), f'python -m pip install "{specifier}"')
    return tuple(seen.values())


def _repeats(requirement: str) -> bool:
    """Return whether a requirement is of an extra that repeats another one; metadata spells that one out."""
    return any(f"extra == '{name}'" in requirement.replace('"', "'") for name in REPEATING)


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _ngspice() -> NgspiceStatus:
    path = None
    try:
        path = str(find_ngspice_library())
        version = ngspice_version(Path(path))
    except MissingToolError as error:
        return NgspiceStatus(path, None, str(error))
    if not is_new_enough(version):
        problem = f"libngspice must be version {MINIMUM_NGSPICE} or newer, not {version} ({path}); install a newer one"
        return NgspiceStatus(path, version, problem)
    return NgspiceStatus(path, version, None)


def _vacask() -> VacaskStatus:
    try:
        return VacaskStatus(vacask_version(), None)
    except MissingToolError as error:
        return VacaskStatus(None, str(error))


def _kits(pdk_root: str | None) -> tuple[str, ...]:
    """Return the process kits that `cosim doctor` finds under PDK_ROOT: the folders with the layout that the usual
    installers give."""
    if pdk_root is None or not Path(pdk_root).is_dir():
        return ()
    return tuple(sorted(folder.name for folder in Path(pdk_root).iterdir() if (folder / "libs.tech").is_dir()))


command = verb(DoctorOptions, run)
