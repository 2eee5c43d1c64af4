"""The libngspice on this machine: where it is, its version and options, and how it starts; without PySpice.

Search order: the variable NGSPICE_LIBRARY_PATH, the active environment, the system's library folders, ldconfig.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from cosim.base.errors import MissingToolError

LIBRARY_VARIABLE = "NGSPICE_LIBRARY_PATH"
MINIMUM_NGSPICE = 36
INSTALL_COMMANDS = {
    "Debian/Ubuntu": "sudo apt-get install libngspice0",
    "Fedora": "sudo dnf install libngspice",
    "macOS": "brew install libngspice",
}
_PATTERNS = ("libngspice.so", "libngspice.so.*", "libngspice.dylib", "libngspice.*.dylib")

_TIMEOUT = 20.0  # s
_VERSION = re.compile(r"ngspice-(\d[\w.+]*)")

# At its start ngspice runs the commands in `spinit` and in the first `.spiceinit` that it finds: in the current folder,
# in the user's, or where a variable points. Such a file can run a shell, change results or end the process. In a folder
# of ours, whose files say nothing, it starts as it is, whatever its version. `ngSpice_nospiceinit`, which newer ones
# export, would have to be called before the initialisation, where some builds crash on it.
START = Path(__file__).parent / "start"
_START_FOLDERS = ("HOME", "SPICE_LIB_DIR", "SPICE_SCRIPTS", "SPICE_USERINIT_DIR", "NGSPICE_INPUT_DIR")

# Runs in a child process: a library that crashes or hangs while loading must not take the caller with it.
_PROBE = """
import ctypes, json, sys
lines = []
send_char = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p)(
    lambda text, ident, user: lines.append(text.decode("utf-8", "replace")) or 0)
exited = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_bool, ctypes.c_bool, ctypes.c_int, ctypes.c_void_p)(
    lambda *_: 0)
try:
    library = ctypes.CDLL(sys.argv[1])
    library.ngSpice_Init(send_char, None, exited, None, None, None, None)
    deck = [line.encode() for line in json.loads(sys.argv[2])]
    if deck:
        library.ngSpice_Circ((ctypes.c_char_p * (len(deck) + 1))(*deck, None))
        library.ngSpice_Command(b"run")
    library.ngSpice_Command(sys.argv[3].encode())
except (OSError, AttributeError) as error:
    lines = ["cannot load: " + str(error)]
print(json.dumps(lines))
"""


def start_environment() -> dict[str, str]:
    """Return the environment variables with which ngspice finds only our own empty start files, in START."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPICE_", "NGSPICE_"))}
    return {**kept, **dict.fromkeys(_START_FOLDERS, str(START))}


def find_ngspice_library() -> Path:
    """Return the path of the libngspice to load.

    Raises MissingToolError where there is none, or where NGSPICE_LIBRARY_PATH names no file.
    """
    named = os.environ.get(LIBRARY_VARIABLE)
    if named:
        if not Path(named).is_file():
            raise MissingToolError(
                f"{LIBRARY_VARIABLE} must name the libngspice file, not {named!r}, which is no file; "
                "correct it, or unset it to search the usual places"
            )
        return Path(named)
    for path in _candidates():
        if path.is_file():
            return path
    raise MissingToolError(
        f"libngspice is missing: simulation needs it, everything up to the netlist does not. {format_install_hint()}"
    )


def format_install_hint() -> str:
    """Return the sentence that says how to install libngspice on each system, or how to name its file."""
    commands = "; ".join(f"{system}: {command}" for system, command in INSTALL_COMMANDS.items())
    return f"Install it ({commands}), or set {LIBRARY_VARIABLE} to the library file."


@lru_cache
def ngspice_version(path: Path, timeout: float = _TIMEOUT) -> str:
    """Return the version that a libngspice reports, such as `39` or `44.2`; a child process loads the library.

    `timeout` is in seconds. Raises MissingToolError when the file does not load or does not answer.
    """
    return next(found[1] for line in _ask(path, (), "version", timeout) if (found := _VERSION.search(line)))


@lru_cache
def effective_options(path: Path, deck: str) -> dict[str, str]:
    """Return every ngspice option in effect after a deck's run, by name, as ngspice writes it.

    Raises MissingToolError when the library does not load or does not answer.
    """
    lines = _ask(path, tuple(deck.splitlines()), "option", _TIMEOUT)
    found = (re.match(r"(?:stdout )?([A-Za-z]\w*(?: \w+)?)\s*(?:\(.*\))?\s*= (\S+)\s*$", line) for line in lines)
    return {match[1].lower(): match[2] for match in found if match}


def _ask(path: Path, deck: tuple[str, ...], command: str, timeout: float) -> list[str]:
    """Return the lines that a libngspice prints in a child process: at its start, for a deck, for a command."""
    arguments = [sys.executable, "-I", "-c", _PROBE, str(path.absolute()), json.dumps(deck), command]
    try:
        probe = subprocess.run(
            arguments, capture_output=True, text=True, timeout=timeout, check=False, cwd=START, env=start_environment()
        )
    except subprocess.TimeoutExpired:
        raise MissingToolError(f"{path} gave no answer within {timeout:g} s. {format_install_hint()}") from None
    reply = probe.stdout.strip().splitlines()
    lines = _decode_lines(reply[-1] if reply else "")
    if any(_VERSION.search(line) for line in lines) and not lines[0].startswith("cannot load"):
        return lines
    reason = "; ".join(lines) or f"exit status {probe.returncode} {probe.stderr.strip()[-200:]}".strip()
    raise MissingToolError(f"{path} is not a usable libngspice ({reason}). {format_install_hint()}")


def ngspice_program() -> tuple[str, str] | None:
    """Return path and version of the program `ngspice`, which runs written testbenches by hand; None if missing.

    The version is "" where the program does not say it.
    """
    path = shutil.which("ngspice")
    if path is None:
        return None
    try:
        said = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace",
            timeout=_TIMEOUT, check=False, cwd=START, env=os.environ | start_environment(),
        ).stdout  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        said = ""
    found = _VERSION.search(said)
    return path, found[1] if found else ""


def is_new_enough(version: str) -> bool:
    """Tell whether a libngspice version such as `39.3` is at least MINIMUM_NGSPICE."""
    major = re.match(r"\d+", version)
    return major is not None and int(major.group()) >= MINIMUM_NGSPICE


def _decode_lines(reply: str) -> list[str]:
    try:
        return [str(line) for line in json.loads(reply)]
    except ValueError:
        return []


def _candidates() -> Iterator[Path]:
    for folder in _library_folders():
        for pattern in _PATTERNS:
            yield from sorted(folder.glob(pattern))
    yield from _ldconfig_paths()


def _library_folders() -> list[Path]:
    multiarch = sysconfig.get_config_var("MULTIARCH") or f"{platform.machine()}-linux-gnu"
    named = [os.environ.get("CONDA_PREFIX"), sys.prefix, os.environ.get("HOMEBREW_PREFIX")]
    searched = [*os.environ.get("LD_LIBRARY_PATH", "").split(":"), *os.environ.get("DYLD_LIBRARY_PATH", "").split(":")]
    folders = [Path(folder) for folder in searched if folder]
    folders += [Path(prefix) / "lib" for prefix in named if prefix]
    folders += [Path("/usr/local/lib"), Path("/usr/lib") / multiarch, Path("/usr/lib64"), Path("/usr/lib")]
    if sys.platform == "darwin":
        folders += [Path("/opt/homebrew/lib"), Path("/opt/local/lib")]
    return folders


def _ldconfig_paths() -> Iterator[Path]:
    """Yield the ngspice libraries in the dynamic linker's cache; ldconfig may be outside a user's PATH."""
    for command in ("ldconfig", "/sbin/ldconfig"):
        try:
            listing = subprocess.run([command, "-p"], capture_output=True, text=True, timeout=10, check=False).stdout
        except (OSError, subprocess.TimeoutExpired):
            continue
        found = re.findall(r"libngspice\.so\S* \(([^)]*)\) => (\S+)", listing)
        # A 64-bit interpreter cannot load the 32-bit build; only the 64-bit entries name their architecture.
        yield from (Path(path) for kind, path in found if (sys.maxsize > 2**32) == ("," in kind))
        return
