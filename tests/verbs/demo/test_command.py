"""The demo as a user types it, on two digits."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from cosim.base.resources import trained_network_path
from cosim.exchange.checkpoint import load_network, save_checkpoint
from cosim.training.config import Architecture, TrainingConfig, describe_config
from cosim.verbs.demo import command as demo

MAIN = "from cosim.cli import main; main()"


@pytest.mark.slow
@pytest.mark.ngspice
def test_demo_trains_compiles_simulates_and_compares(tmp_path):
    command = [sys.executable, "-c", MAIN, "demo", "-o", str(tmp_path), "--samples", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "comparison.json").read_text())
    assert summary["samples"] == 2
    left_out = json.loads((tmp_path / "design.json").read_text()).get("left_out", ())  # cells that no input can change
    built = 16 - len(left_out)
    assert built >= 14 and summary["state_bits"] == 2 * 8 * built  # digits, frames, cells
    # Shipped networks of this size agree in more than 99.5 % of the bits; one knock-on in two digits is 4 bits of 256.
    assert summary["state_agreement"] > 0.95
    for name in ("model.pt", "netlist/network.sp", "netlist/mapping.csv", "waveforms.png", "report.html"):
        assert (tmp_path / name).stat().st_size > 0, name
    assert "transistors" in done.stdout and "report.html" in done.stdout


@pytest.mark.parametrize(
    ("settings", "figures", "kept"),
    [
        ({}, {"test_accuracy": 0.8}, True),
        ({}, {}, False),
        ({}, {"test_accuracy": "high"}, False),
        ({"batch": 7}, {"test_accuracy": 0.8}, False),
    ],
)
def test_only_its_own_network_saves_the_training(tmp_path, settings, figures, kept):
    """A network with another history, in the folder under the same name, is trained again and not relied on."""
    config = TrainingConfig(Architecture(cells=demo.CELLS), weight_cost=demo.WEIGHT_COST)
    network = load_network(trained_network_path("digits_d8"))
    history = {"settings": describe_config(config) | settings, "figures": figures}
    save_checkpoint(tmp_path / "model.npz", replace(network, history=history))
    assert demo._is_trained_so(load_network(tmp_path / "model.npz"), config) is kept
