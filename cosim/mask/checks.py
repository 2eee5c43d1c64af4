"""DRC and LVS with the decks of the user's kit in the klayout application, and what their reports say.

The kit's own script for LVS exits 0 on a mismatch, and so does the deck: what counts is what its log says.
"""

import os
import re
import shlex
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from cosim.base.errors import MissingToolError, SimulationError
from cosim.technology.types import DrawingRules, Technology

OLDEST = (0, 28, 4)
_THREADS = 2  # of a deck
STACKS = {
    "A": ("30K", "A", "3LM"),
    "B": ("11K", "B", "4LM"),
    "C": ("9K", "B", "5LM"),
    "D": ("11K", "B", "5LM"),
}  # variant -> top metal, capacitor option, metals, as the kit's scripts name them
_APART = {"antenna", "density", "main", "layers_def", "tail"}  # decks that are no table of the main one
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
_MATCH, _MISMATCH = "Congratulations! Netlists match", "Netlists don't match"


@dataclass(frozen=True)
class Violation:
    """A place in the layout that violates a design rule, um."""

    rule: str
    text: str
    x: float
    y: float


@dataclass(frozen=True)
class CheckResult:
    """The result of one check: its name, its verdict, and the places of violations."""

    check: str
    passed: bool
    summary: str
    violations: tuple[Violation, ...] = ()


@dataclass(frozen=True)
class Checker:
    """The klayout application and the kit's rule decks, with which a layout is checked."""

    application: str
    decks: Path
    drawing: DrawingRules


def find_checker(technology: Technology, drawing: DrawingRules) -> Checker:
    """Return the layout checker. Raises MissingToolError where the application, pmap or the kit's decks are missing."""
    application = find_application()
    if shutil.which("pmap") is None:
        raise MissingToolError(
            "the foundry's decks call pmap, which is missing; install it with: apt-get install procps"
        )
    root = next((one for one in technology.library.file.parents if (one / drawing.decks).is_dir()), None)
    if root is None:
        raise MissingToolError(
            f"the kit at {technology.library.file} has no {drawing.decks} beside it, so DRC and LVS cannot run; "
            "install the whole kit, or leave --check out"
        )
    return Checker(application, root / drawing.decks, drawing)


def find_application() -> str:
    """Return the path of the klayout application. Raises MissingToolError where it is missing or too old."""
    install = "install it with: apt-get install klayout procps, or from klayout.de"
    path = shutil.which("klayout")
    if path is None:
        raise MissingToolError(f"the application klayout is missing; {install}")
    found = subprocess.run([path, "-b", "-v"], capture_output=True, text=True, check=False).stdout
    numbers = re.search(r"(\d+)\.(\d+)\.(\d+)", found)
    if numbers is None or tuple(map(int, numbers.groups())) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise MissingToolError(f"klayout must be {wanted} or newer, not {found.strip() or 'silent'}; {install}")
    return path


def run_drc(checker: Checker, gds: Path, folder: Path, table: str) -> CheckResult:
    """Run `main`, `antenna` or `density` of the kit on a GDS file; main holds the off-grid rules, too."""
    rules = checker.decks / "drc" / "rule_decks"
    shutil.copyfile(rules / "layers_def.drc", folder / "layers_def.drc")
    deck = folder / f"{table}.drc"
    if table == "main":
        tables = sorted(one.stem for one in rules.glob("*.drc") if one.stem not in _APART)
        parts = ["main", *tables, "tail"]
        deck.write_bytes(b"".join((rules / f"{part}.drc").read_bytes() for part in parts))
    else:
        shutil.copyfile(rules / f"{table}.drc", deck)
    report = folder / f"{table}.lyrdb"
    options = {
        "input": gds, "report": report, "table_name": table, "thr": _THREADS, "run_mode": "flat",
        "verbose": "false", "feol": "true", "beol": "true", "offgrid": "true", "conn_drc": "true", "density": "true",
        "split_deep": "false", "slow_via": "false",
    }  # fmt: skip
    _run(checker, deck, options, folder / f"{table}.log")
    found = read_violations(report)
    count = Counter(one.rule for one in found)
    summary = ", ".join(f"{rule} {times}" for rule, times in sorted(count.items())) or "no violation"
    return CheckResult(table, not found, summary, found)


def run_lvs(checker: Checker, gds: Path, netlist: Path, folder: Path, check: str = "lvs") -> CheckResult:
    """Compare the layout in a GDS file with a netlist (LVS).

    check: `lvs` for a netlist with a line for each drawn unit; `hierarchy` for one with subcircuits, in which parallel
    units are one transistor: then the layout's are combined as well.
    """
    deck = checker.decks / "lvs" / "gf180mcu.lvs"
    log = folder / f"{check}.log"
    combine = "true" if check == "hierarchy" else "false"
    options = {
        "input": gds, "schematic": netlist, "report": folder / f"{check}.lvsdb",
        "target_netlist": folder / f"{check}.cir", "thr": _THREADS, "run_mode": "deep",
        "lvs_sub": "vss", "poly_res": "1k", "mim_cap": "2", "schematic_simplify": "true", "verbose": "false",
        "spice_net_names": "true", "spice_comments": "false", "scale": "false", "net_only": "false",
        "top_lvl_pins": "false", "combine": combine, "purge": "false", "purge_nets": "false",
    }  # fmt: skip
    text = _run(checker, deck, options, log)
    matched = _MATCH in text and _MISMATCH not in text
    return CheckResult(check, matched, "netlists match" if matched else "netlists do not match")


def _run(checker: Checker, deck: Path, options: dict[str, object], log: Path) -> str:
    """Run a deck and return what it says, which its log has behind the command.

    Paths are made absolute, because klayout takes them from the deck's folder.
    """
    top, plates, metals = STACKS[checker.drawing.variant]
    given = {**options, "metal_top": top, "mim_option": plates, "metal_level": metals}
    command = [checker.application, "-b", "-r", str(deck.resolve())]
    for key, value in given.items():
        command += ["-rd", f"{key}={value.resolve() if isinstance(value, Path) else value}"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "HOME": str(log.parent.resolve())}
    )
    text = done.stdout + done.stderr
    log.write_text(f"{shlex.join(command)}\n{text}", encoding="utf-8")
    if done.returncode != 0:
        last = (text.strip().splitlines() or ["it said nothing"])[-1]
        raise SimulationError(f"klayout failed on {deck.name}: {last}; the log is {log}")
    return text


def read_violations(report: Path) -> tuple[Violation, ...]:
    """Read the violations in a report database; the place of each is the middle of its marker, micrometre."""
    tree = ElementTree.parse(report)
    texts = {
        (one.findtext("name") or "").strip("'"): one.findtext("description") or "" for one in tree.iter("category")
    }
    found: list[Violation] = []
    for item in tree.iter("item"):
        rule = (item.findtext("category") or "").strip("'")
        values = [value.text or "" for value in item.iter("value")]
        numbers = [float(one) for one in _NUMBER.findall(" ".join(values).partition(":")[2])]
        xs, ys = numbers[0::2] or [0.0], numbers[1::2] or [0.0]
        x, y = (round((min(each) + max(each)) / 2, 3) for each in (xs, ys))
        found.append(Violation(rule, " ".join(texts.get(rule, "").split()), x, y))
    return tuple(sorted(found, key=lambda one: (one.rule, one.x, one.y)))
