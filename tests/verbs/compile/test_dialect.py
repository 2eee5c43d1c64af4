"""`cosim compile --dialect`: which files, what design.json says, and an unknown dialect."""

import json

import pytest

from cosim.circuit.dialects.table import DIALECTS


@pytest.mark.ngspice
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_files_of_each_dialect(cosim_main, tiny, tmp_path, dialect):
    code, out, _ = cosim_main("compile", tiny / "net.npz", "-o", tmp_path, "--dialect", dialect.name)
    files = dialect.files
    names = {files.netlist, files.devices, files.testbench}
    assert code == 0
    others = {"expected.csv", "mapping.csv", "mapping.json", "design.json", "network.svg", "report.html", "page.json"}
    others |= {"start.sp"} if dialect.name == "ngspice" else set()
    assert {path.name for path in tmp_path.iterdir()} == names | others | {".cosim", "run.toml"}
    assert json.loads((tmp_path / "design.json").read_text())["dialect"] == dialect.name
    assert all(name in out for name in names)
    bench = (tmp_path / files.testbench).read_text()
    assert files.netlist in bench and files.devices in bench
    assert str(tmp_path) not in "".join((tmp_path / name).read_text() for name in names)


def test_without_the_option_it_is_ngspice(cosim_main, tiny, tmp_path):
    for folder, options in (("plain", ()), ("named", ("--dialect", "ngspice"))):
        assert cosim_main("compile", tiny / "net.npz", "-o", tmp_path / folder, *options)[0] == 0
    for path in (tmp_path / "plain").iterdir():
        assert path.read_bytes() == (tmp_path / "named" / path.name).read_bytes()


def test_unknown_dialect(cosim_main, tiny, tmp_path):
    code, _, err = cosim_main("compile", tiny / "net.npz", "-o", tmp_path / "out", "--dialect", "eldo")
    assert (code, "'eldo' is not one of 'ngspice', 'spectre', 'hspice', 'xyce'" in " ".join(err.split())) == (2, True)
    assert not (tmp_path / "out").exists()
