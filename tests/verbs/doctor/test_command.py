"""`cosim doctor` tells what is there and, for each missing thing, what to type."""

import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner

from cosim.base import resources
from cosim.base.errors import MissingToolError
from cosim.engines.ngspice.library import format_install_hint, ngspice_program
from cosim.verbs.doctor import command as doctor

ROOT = Path(__file__).parents[3]
# Build back ends differ: some keep `cosim-analog[train]` under `all`, some spell it out.
REQUIRES = [
    "numpy>=2.0",
    "nosuchcore>=3",
    "nosuchtorch<9; extra == 'all'",
    "cosim-analog[train]; extra == 'all'",
    "nosuchtorch<9; extra == 'train'",
]
# of an extra that has wheels for some systems: told by the simulator's own row
FOR_SOME = "nosuchwheel==1; (sys_platform == 'linux' and platform_machine == 'x86_64') and extra == 'vacask'"


@pytest.fixture
def machine(monkeypatch):
    """A machine with its packages in order, both simulators and no process kit."""
    monkeypatch.delenv("PDK_ROOT", raising=False)
    monkeypatch.setattr(doctor.metadata, "requires", lambda name: ["numpy>=2.0"])
    monkeypatch.setattr(doctor, "find_ngspice_library", lambda: Path("/somewhere/libngspice.so.0"))
    monkeypatch.setattr(doctor, "ngspice_version", lambda path: "39")
    monkeypatch.setattr(doctor, "ngspice_program", lambda: ("/somewhere/ngspice", "44.2"))
    monkeypatch.setattr(doctor, "vacask_version", lambda: "0.3.4")
    return monkeypatch


def run_doctor(*arguments):
    return CliRunner().invoke(doctor.command, arguments)


def test_complete_machine_is_ready(machine):
    result = run_doctor()
    assert result.exit_code == 0
    assert "/somewhere/libngspice.so.0" in result.output
    assert metadata.version("numpy") in result.output
    assert "To repair" not in result.output
    assert result.output.endswith("ready: networks can be compiled and simulated\n")


def test_missing_core_package_gets_its_command(machine):
    machine.setattr(doctor.metadata, "requires", lambda name: REQUIRES)
    result = run_doctor()
    assert result.exit_code == 1
    assert 'nosuchcore (core): python -m pip install "nosuchcore>=3"' in result.output
    assert "not ready to simulate" in result.output


def test_missing_extra_is_told_but_does_not_fail(machine):
    machine.setattr(doctor.metadata, "requires", lambda name: [text for text in REQUIRES if "core" not in text])
    result = run_doctor()
    assert result.exit_code == 0
    assert 'nosuchtorch (train): python -m pip install "nosuchtorch<9"' in result.output


def test_a_package_is_of_the_extra_that_names_it_not_of_one_that_repeats_it(machine):
    """Metadata lists extras in the order of their names, and what `tensorboard` takes of `train` as its own."""
    requires = ["nosuchtorch<9; extra == 'tensorboard'", "nosuchboard; extra == 'tensorboard'", *REQUIRES[2:]]
    machine.setattr(doctor.metadata, "requires", lambda name: requires)
    result = run_doctor()
    assert 'nosuchtorch (train): python -m pip install "nosuchtorch<9"' in result.output
    assert 'nosuchboard (tensorboard): python -m pip install "nosuchboard"' in result.output


def test_the_manual_names_every_extra_and_no_other():
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = pyproject["project"]["optional-dependencies"]
    page = (ROOT / "docs" / "start" / "install.md").read_text()
    table = page[page.index("| Extra | For |") :].split("\n\n")[0].splitlines()[2:]
    assert sorted(re.findall(r"`([a-z]+)`", " ".join(row.split("|")[1] for row in table))) == sorted(extras)
    repeating = [name for name, wants in extras.items() if any("cosim-analog[" in one for one in wants)]
    assert sorted(repeating) == sorted([*doctor.REPEATING, doctor.EVERYTHING])
    whole = re.search(r"\[(.*)\]", extras[doctor.EVERYTHING][0])[1].split(",")
    assert set(extras) - set(whole) == {doctor.EVERYTHING, *doctor.REPEATING}


def test_the_command_for_an_extra_is_that_of_the_checkout_where_there_is_one(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert resources.install_command("nir") == "python -m pip install -e '.[nir]'"
    monkeypatch.chdir(tmp_path)
    assert resources.install_command("nir") == f"python -m pip install -e '{ROOT}[nir]'"
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path / "site-packages" / "cosim")
    assert resources.install_command("nir") == "python -m pip install 'cosim-analog[nir]'"


def test_not_installed_package_does_not_crash(machine):
    def requires(name):
        raise metadata.PackageNotFoundError(name)

    machine.setattr(doctor.metadata, "requires", requires)
    result = run_doctor()
    assert result.exit_code == 1
    assert "pip install -e ." in result.output


def test_missing_library_says_what_to_install(machine):
    def find():
        raise MissingToolError(f"libngspice is missing. {format_install_hint()}")

    machine.setattr(doctor, "find_ngspice_library", find)
    result = run_doctor()
    assert result.exit_code == 1
    assert "apt-get install libngspice0" in result.output


def test_the_second_simulator_may_be_missing(machine):
    machine.setattr(doctor.metadata, "requires", lambda name: ["numpy>=2.0", FOR_SOME])
    assert "0.3.4" in run_doctor().output

    def find():
        raise MissingToolError("VACASK is missing. Install it (pip)")

    machine.setattr(doctor, "vacask_version", find)
    result = run_doctor()
    assert result.exit_code == 0
    assert "VACASK is missing. Install it (pip)" in result.output
    assert "nosuchwheel" not in result.output
    assert json.loads(run_doctor("--json").output)["vacask"] == {
        "version": None, "problem": "VACASK is missing. Install it (pip)",
    }  # fmt: skip


def test_wrong_variable_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("NGSPICE_LIBRARY_PATH", str(tmp_path / "absent.so"))
    result = run_doctor()
    assert result.exit_code == 1
    assert f"NGSPICE_LIBRARY_PATH must name the libngspice file, not '{tmp_path / 'absent.so'}'" in result.output


def test_old_library_is_refused(machine):
    machine.setattr(doctor, "ngspice_version", lambda path: "35")
    result = run_doctor()
    assert result.exit_code == 1
    assert "libngspice must be version 36 or newer, not 35" in result.output


def test_the_program_is_told_beside_the_library_and_may_be_missing(machine):
    assert re.search(r"\nngspice +44\.2 +/somewhere/ngspice\n", run_doctor().output)
    machine.setattr(doctor, "ngspice_program", lambda: None)
    result = run_doctor()
    assert result.exit_code == 0 and "To repair" not in result.output
    assert re.search(r"\nngspice +missing +only for testbenches by hand", result.output)


@pytest.mark.parametrize(
    ("said", "version"),
    [("echo '** ngspice-47 : Circuit level'", "47"), ("exit 3", ""), ("echo hello", ""), (r"printf '\377\376'", "")],
)
def test_the_program_says_its_version(tmp_path, monkeypatch, said, version):
    program = tmp_path / "ngspice"
    program.write_text(f"#!/bin/sh\n{said}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert ngspice_program() == (str(program), version)
    program.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ngspice_program() is None


def test_process_kits_are_listed(machine, tmp_path):
    (tmp_path / "kitB" / "libs.tech").mkdir(parents=True)
    (tmp_path / "kitA" / "libs.tech").mkdir(parents=True)
    (tmp_path / "readme").mkdir()
    machine.setenv("PDK_ROOT", str(tmp_path))
    assert json.loads(run_doctor("--json").output)["pdk_kits"] == ["kitA", "kitB"]


@pytest.mark.parametrize("root", ["absent", "."])
def test_empty_pdk_root_is_said(machine, tmp_path, root):
    machine.setenv("PDK_ROOT", str(tmp_path / root))
    assert "no kit found" in run_doctor().output


def test_json_carries_the_same_findings(machine):
    machine.setattr(doctor.metadata, "requires", lambda name: REQUIRES)
    result = run_doctor("--json")
    found = json.loads(result.output)
    assert result.exit_code == 1
    assert found["ready"] is False
    assert found["ngspice"] == {
        "path": "/somewhere/libngspice.so.0", "version": "39", "problem": None,
        "program": "/somewhere/ngspice", "program_version": "44.2",
    }  # fmt: skip
    assert [(item["name"], item["group"]) for item in found["dependencies"]] == [
        ("numpy", "core"), ("nosuchcore", "core"), ("nosuchtorch", "train"),
    ]  # fmt: skip


def test_nothing_heavy_is_imported():
    heavy = "{'PySpice', 'torch', 'numpy', 'scipy', 'matplotlib'}"
    code = f"import sys, cosim.verbs.doctor.command; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_the_exit_status_of_the_command_line(cosim_main, monkeypatch):
    monkeypatch.setenv("NGSPICE_LIBRARY_PATH", "/nonexistent.so")
    code, out, _ = cosim_main("doctor")
    assert code == 1
    assert "not ready to simulate" in out
