"""The demo as a user types it, on two digits."""

import json
import subprocess
import sys

import pytest

MAIN = "from cosim.cli import main; main()"


@pytest.mark.slow
@pytest.mark.ngspice
def test_demo_trains_compiles_simulates_and_compares(tmp_path):
    command = [sys.executable, "-c", MAIN, "demo", "-o", str(tmp_path), "--samples", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "comparison.json").read_text())
    assert summary["samples"] == 2
    assert summary["state_bits"] == 2 * 8 * 16  # digits, frames, cells
    # Shipped networks of this size agree in more than 99.5 % of the bits; one knock-on in two digits is 4 bits of 256.
    assert summary["state_agreement"] > 0.95
    for name in ("model.pt", "netlist/network.sp", "netlist/mapping.csv", "waveforms.png", "report.html"):
        assert (tmp_path / name).stat().st_size > 0, name
    assert "transistors" in done.stdout and "report.html" in done.stdout
