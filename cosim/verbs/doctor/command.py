"""Command `cosim doctor`: say what is installed, what is missing, and which command installs it.

Begins with package metadata, so it also works in a broken installation; kits are read where numpy is installed.
"""

import json
import os
import platform
import re
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from cosim.base.errors import CosimError, MissingToolError
from cosim.base.resources import models_path
from cosim.base.version import __version__
from cosim.cli.session import VerbSession
from cosim.cli.verb import Result, switch, verb
from cosim.engines.ngspice.library import (
    MINIMUM_NGSPICE,
    find_ngspice_library,
    is_new_enough,
    ngspice_program,
    ngspice_version,
)
from cosim.engines.vacask.program import vacask_version

if TYPE_CHECKING:
    from cosim.technology.types import Technology

DISTRIBUTION = "cosim-analog"
CORE = "core"
EVERYTHING = "all"  # the extra that repeats all the others
REPEATING = ("tensorboard", "cuda")  # extras that bring another one as well: train, batch


@dataclass(frozen=True)
class Dependency:
    """A required package; group: the extra that needs it; version: None if missing; install: command to install."""

    name: str
    group: str
    version: str | None
    install: str


@dataclass(frozen=True)
class NgspiceStatus:
    """The state of ngspice: path and version of its library, and problem (None if there is none).

    program, program_version: path and version of the program `ngspice`, None if it is missing. cosim needs only the
    library; the program runs a written testbench by hand.
    """

    path: str | None
    version: str | None
    problem: str | None
    program: str | None = None
    program_version: str | None = None


@dataclass(frozen=True)
class VacaskStatus:
    """The state of the second simulator, VACASK, for `--engine vacask` and for sg13g2; problem: how to install it."""

    version: str | None
    problem: str | None


@dataclass(frozen=True)
class KitStatus:
    """The state of the foundry kit of a technology.

    file: of its library, None if the kit is not found; tested: whether its devices are those for which the package
    ships a calibration, None without the kit; note: what to know or to do, "" for nothing.
    """

    technology: str
    file: str | None
    tested: bool | None
    note: str


@dataclass(frozen=True)
class Diagnosis:
    """The findings of `cosim doctor`; ready: networks can be compiled and simulated."""

    cosim: str
    python: str
    dependencies: tuple[Dependency, ...]
    ngspice: NgspiceStatus
    vacask: VacaskStatus
    pdk_root: str | None
    pdk_kits: tuple[str, ...]
    technologies: tuple[KitStatus, ...]
    ready: bool


@dataclass(frozen=True, kw_only=True)
class DoctorOptions:
    """Options of `cosim doctor`: whether to print JSON."""

    as_json: bool = switch("Print the same findings as JSON.", flags=("--json",))


def run(options: DoctorOptions, _session: VerbSession) -> Result:
    """Say what is installed, what is missing and how to install it.

    Exit status 0 when everything that simulation needs is there, 1 otherwise.
    """
    found = diagnose()
    text = json.dumps(asdict(found), indent=2) if options.as_json else format_diagnosis(found)
    return Result(found, lines=[text], fault=None if found.ready else "")


def diagnose() -> Diagnosis:
    """Return what is found of the interpreter, packages, simulators and process kits."""
    dependencies = _dependencies()
    program, program_version = ngspice_program() or (None, None)
    ngspice = replace(_ngspice(), program=program, program_version=program_version)
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
        technologies=_technologies(),
        ready=core_complete and ngspice.problem is None,
    )


def format_diagnosis(found: Diagnosis) -> str:
    """Format findings as a table, followed by an install command for each thing that is missing."""
    rows = [("cosim", found.cosim, ""), ("Python", found.python, "")]
    rows += [(item.name, item.version or "missing", item.group) for item in found.dependencies]
    rows.append(("libngspice", found.ngspice.version or "missing", found.ngspice.path or ""))
    program = found.ngspice.program or "only for testbenches by hand (apt-get install ngspice)"
    rows.append(("ngspice", found.ngspice.program_version or ("missing" if not found.ngspice.program else ""), program))
    rows.append(("VACASK", found.vacask.version or "missing", "second simulator, for --engine vacask, and for sg13g2"))
    rows.append(("PDK_ROOT", _pdk_status(found), found.pdk_root or ""))
    words = {True: "as tested", False: "not tested", None: "no kit"}
    for kit in found.technologies:
        rows.append((kit.technology, words[kit.tested], kit.file or kit.note))
    left, middle = (max(len(row[column]) for row in rows) for column in (0, 1))
    lines = [f"{name:<{left}}  {status:<{middle}}  {note}".rstrip() for name, status, note in rows]
    repairs = [f"{item.name} ({item.group}): {item.install}" for item in found.dependencies if item.version is None]
    repairs += [problem for problem in (found.ngspice.problem, found.vacask.problem) if problem]
    repairs += [f"{kit.technology}: {kit.note}" for kit in found.technologies if kit.file and kit.note]
    if repairs:
        lines += ["", "To repair:", *(f"  {repair}" for repair in repairs)]
    verdict = "ready: networks can be compiled and simulated" if found.ready else "not ready to simulate"
    return "\n".join([*lines, "", verdict])


def _pdk_status(found: Diagnosis) -> str:
    if found.pdk_root is None:
        return "not set"
    return ", ".join(found.pdk_kits) or "no kit found"


def _dependencies() -> tuple[Dependency, ...]:
    """Return the direct dependencies, each once, under the first group that needs it; the core group comes first.

    An extra comes before one that repeats it: torch belongs to `train`, although `tensorboard` brings it as well.
    Dependencies for some platforms only are left out; that is VACASK, which `_vacask` looks for.
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
    """Tell whether a requirement belongs to an extra that repeats another one, whose requirements it lists again."""
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
    """Return the names of the process kits under PDK_ROOT: folders with the layout that common installers make."""
    if pdk_root is None or not Path(pdk_root).is_dir():
        return ()
    return tuple(sorted(folder.name for folder in Path(pdk_root).iterdir() if (folder / "libs.tech").is_dir()))


def _technologies() -> tuple[KitStatus, ...]:
    """Return the state of each foundry's kit; none where a package is missing that reading them needs."""
    try:
        from cosim.technology.catalog import load_technology, technology_names

        found = list[KitStatus]()
        for name in technology_names():
            try:
                technology = load_technology(name)
            except MissingToolError as error:
                found.append(KitStatus(name, None, None, str(error).rpartition("; ")[2]))
                continue
            if not technology.library.file.is_relative_to(models_path()):
                tested = _is_tested(technology)
                note = "" if tested else "its devices differ from those tested; cosim calibrates them anew, in minutes"
                found.append(KitStatus(name, str(technology.library.file), tested, note))
    except ImportError:
        return ()
    return tuple(found)


def _is_tested(technology: "Technology") -> bool:
    """Tell whether a kit's devices and sizes are those for which the package ships a calibration."""
    from cosim.technology.calibration import CALIBRATION_FILE
    from cosim.technology.scale import DEFAULT_UNITS
    from cosim.verbs.calibrate.find import shipped_path
    from cosim.verbs.calibrate.fingerprint import calibration_fingerprint

    try:
        shipped = CALIBRATION_FILE.load(shipped_path(technology.name, DEFAULT_UNITS))
        return shipped.fingerprint == calibration_fingerprint(technology, DEFAULT_UNITS)
    except CosimError:
        return False


command = verb(DoctorOptions, run)
