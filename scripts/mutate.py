"""Mutation testing: change one thing in a module, run the tests named for it, and see whether one fails.

    python scripts/mutate.py list cosim/compiler/size.py
    python scripts/mutate.py run cosim/compiler/size.py cosim/compiler/centre.py --count 12 --seed 1

Run it in the root of a checkout. A mutant is one change of the module's syntax tree (kinds: scripts/mutations.py);
`run` draws `--count` of each module's by seed, or takes all, writes each into a temporary copy of the tree, never into
the tree itself, and runs tests_of(module) there, the most specific file first, up to the first failure. ngspice stays
off: laws and closed forms must see a wrong equation, and do so in a second. A mutant whose tests fail, or take longer
than `--limit` seconds, is killed. Survivors are printed with their change; `--results` keeps every outcome as a line of
JSON and is resumed as long as neither the module nor its tests change.

A survivor is a test that is missing, or a mutant that does the same as the module. Those are listed with their reasons
in scripts/equivalent_mutants.toml and do not count: score = killed / (drawn - equivalent).
"""

import argparse
import compileall
import hashlib
import importlib
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path

from mutations import Mutant, mutants_of

FOLDERS = ("cosim", "tests", "models", "netlists", "scripts", "docs")
EQUIVALENT = Path("scripts/equivalent_mutants.toml")
# Beside tests/x/test_y.py for cosim/x/y.py, in the order in which they run.
FURTHER_TESTS = {
    "cosim/verbs/compare/agreement.py": ("tests/compiler/test_native.py",),
    "cosim/engines/behavioral/evaluate.py": (
        "tests/engines/behavioral/test_equations.py",
        "tests/compiler/test_lower.py",
    ),
    "cosim/compiler/lower.py": ("tests/compiler/test_native.py",),
    "cosim/compiler/size.py": ("tests/compiler/test_native.py",),
}
# Loaded once, before the process of each mutant is forked off: half of the time of a short run otherwise.
PRELOAD = ("pytest", "numpy", "networkx", "scipy.optimize", "scipy.stats")
INTERNAL_ERROR = 70


@dataclass(frozen=True)
class Outcome:
    """`state`: killed or survived; `by`: the first failing test, or why there is none."""

    mutant: str
    basis: str
    state: str
    by: str
    seconds: float


def tests_of(module: str) -> list[str]:
    """The test files of a module that exist, the most specific first."""
    path = Path(module)
    own = Path("tests", *path.parts[1:-1], f"test_{path.name}").as_posix()
    return [name for name in (own, *FURTHER_TESTS.get(module, ())) if Path(name).exists()]


def basis_of(module: str, tree: Path) -> str:
    """Hash of the module and its tests: what an outcome holds for."""
    digest = hashlib.blake2b(digest_size=6)
    for name in (module, *tests_of(module)):
        digest.update((tree / name).read_bytes())
    return digest.hexdigest()


def copy_tree(target: Path) -> None:
    """What tests read, compiled, so that only the mutated module is compiled anew."""
    ignore = shutil.ignore_patterns("__pycache__", ".*")
    for folder in FOLDERS:
        if Path(folder).exists():
            shutil.copytree(folder, target / folder, ignore=ignore)
    for name in Path().glob("*.*"):
        if name.is_file():
            shutil.copy(name, target / name)
    compileall.compile_dir(target / "cosim", quiet=2)


def run_tests(tree: Path, tests: list[str], log: Path) -> None:
    """In a process of its own: pytest in the copy. Ends with pytest's exit code, INTERNAL_ERROR for another package."""
    os.setsid()
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.chdir(tree)
    os.environ["PYTHONPATH"] = str(tree)
    sys.path[:0] = [str(tree)]
    found = importlib.util.find_spec("cosim")
    if found is None or not str(found.submodule_search_locations[0]).startswith(str(tree)):
        os._exit(INTERNAL_ERROR)
    import pytest

    options = ["-x", "-q", "--no-header", "--tb=line", "-p", "no:cacheprovider", "-p", "no:benchmark", "--ngspice=off"]
    code = pytest.main([*options, "--hypothesis-seed=0", *tests])
    sys.stdout.flush()
    os._exit(int(code))


def failing_test(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    named = [line.split(" - ")[0].split(" ", 1)[1] for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return named[0] if named else "the tests cannot be collected"


def try_tree(tree: Path, tests: list[str], limit: float) -> tuple[str, str]:
    """(state, by) of the copy as it stands. Raises SystemExit where the copy is not what is tested."""
    log = tree / "tests.log"
    process = multiprocessing.get_context("fork").Process(target=run_tests, args=(tree, tests, log))
    process.start()
    process.join(limit)
    if process.is_alive():
        os.killpg(process.pid, signal.SIGKILL)
        process.join()
        return "killed", f"time-out after {limit:g} s"
    if process.exitcode == INTERNAL_ERROR:
        sys.exit(f"{tree}: another cosim is imported there; run this script where cosim is not loaded already")
    return ("survived", "") if process.exitcode == 0 else ("killed", failing_test(log))


def run_module(tree: Path, module: str, drawn: list[Mutant], limit: float, done: dict, results: Path | None) -> None:
    """Adds the outcome of every drawn mutant that is not in `done` yet."""
    tests, basis, path = tests_of(module), basis_of(module, tree), tree / module
    if not tests:
        sys.exit(f"{module}: no test file is named for it; add one, or name some in FURTHER_TESTS")
    if all((mutant.key, basis) in done for mutant in drawn):
        return
    for name in PRELOAD:
        importlib.import_module(name)
    original = path.read_bytes()
    state, by = try_tree(tree, tests, 10 * limit)
    if state == "killed":
        print((tree / "tests.log").read_text(errors="replace"), file=sys.stderr)
        sys.exit(f"{module}: its tests must pass before mutation, but did not: {by}")
    for cached in path.parent.glob(f"__pycache__/{path.stem}.*"):
        cached.unlink()  # it is checked by time and size alone, which two mutants may share
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    for mutant in drawn:
        if (mutant.key, basis) in done:
            continue
        path.write_text(mutant.text, encoding="utf-8")
        began = time.monotonic()
        state, by = try_tree(tree, tests, limit)
        outcome = Outcome(mutant.key, basis, state, by, round(time.monotonic() - began, 1))
        done[mutant.key, basis] = outcome
        print(f"  {state} {mutant.key}  {mutant.where}: {mutant.change}  {by}", flush=True)
        if results is not None:
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"module": module, "change": mutant.change, **asdict(outcome)}) + "\n")
    path.write_bytes(original)


def load_outcomes(results: Path | None) -> dict[tuple[str, str], Outcome]:
    if results is None or not results.exists():
        return {}
    records = map(json.loads, results.read_text(encoding="utf-8").splitlines())
    kept = [Outcome(**{name: record[name] for name in Outcome.__annotations__}) for record in records]
    return {(outcome.mutant, outcome.basis): outcome for outcome in kept}


def load_equivalent() -> dict[str, str]:
    """Key of a mutant -> why it does the same as its module."""
    entries = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))["mutant"] if EQUIVALENT.exists() else []
    return {entry["key"]: entry["reason"] for entry in entries}


def draw(module: str, mutants: list[Mutant], count: int | None, seed: int) -> list[Mutant]:
    """`count` of the module's mutants, in their order; all of them for None."""
    if count is None or count >= len(mutants):
        return mutants
    chosen = set(random.Random(f"{seed} {module}").sample(range(len(mutants)), count))
    return [mutant for k, mutant in enumerate(mutants) if k in chosen]


def run(arguments: argparse.Namespace) -> None:
    drawn = {
        module: draw(module, mutants_of(Path(module).read_text(encoding="utf-8")), arguments.count, arguments.seed)
        for module in arguments.modules
    }
    done, equivalent = load_outcomes(arguments.results), load_equivalent()
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        tree = Path(folder).resolve()
        copy_tree(tree)
        bases = {module: basis_of(module, tree) for module in drawn}
        for module, mutants in drawn.items():
            print(module, flush=True)
            run_module(tree, module, mutants, arguments.limit, done, arguments.results)
    print(f"\n{'module':36} {'drawn':>6} {'killed':>7} {'equivalent':>11} {'survived':>9} {'score':>7}")
    total = [0, 0, 0]
    for module, mutants in drawn.items():
        alive = [mutant for mutant in mutants if done[mutant.key, bases[module]].state == "survived"]
        same = [mutant for mutant in alive if mutant.key in equivalent]
        print(format_row(module, len(mutants), len(mutants) - len(alive), len(same)))
        total = [a + b for a, b in zip(total, (len(mutants), len(mutants) - len(alive), len(same)), strict=True)]
        for mutant in alive:
            if mutant.key not in equivalent:
                print(
                    f"    {mutant.key} line {mutant.line}, {mutant.where}\n      - {mutant.old}\n      + {mutant.new}"
                )
    print(format_row("all", *total))


def format_row(name: str, drawn: int, killed: int, same: int) -> str:
    score = f"{killed / (drawn - same):.1%}" if drawn > same else "-"
    return f"{name:36} {drawn:6} {killed:7} {same:11} {drawn - killed - same:9} {score:>7}"


def list_mutants(arguments: argparse.Namespace) -> None:
    equivalent = load_equivalent()
    for module in arguments.modules:
        for mutant in mutants_of(Path(module).read_text(encoding="utf-8")):
            note = f"  (equivalent: {equivalent[mutant.key]})" if mutant.key in equivalent else ""
            print(f"{mutant.key} {module}:{mutant.line} {mutant.where}: {mutant.change}{note}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    for name, action in (("list", list_mutants), ("run", run)):
        verb = verbs.add_parser(name)
        verb.add_argument("modules", nargs="+", help="such as cosim/compiler/size.py")
        verb.set_defaults(action=action)
    verb.add_argument("--count", type=int, help="mutants of each module; default all")
    verb.add_argument("--seed", type=int, default=0, help="which mutants are drawn")
    verb.add_argument("--limit", type=float, default=60.0, help="seconds for the tests of one mutant")
    verb.add_argument("--results", type=Path, help="file of outcomes, resumed if it exists")
    arguments = parser.parse_args()
    arguments.action(arguments)


if __name__ == "__main__":
    main()
