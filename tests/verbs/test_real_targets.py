"""A network with real-valued targets through compile, compare, montecarlo and its page."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cosim.exchange.checkpoint import save_checkpoint
from cosim.network.reference import pool_readout, run_reference

pytestmark = pytest.mark.usefixtures("unrendered_module")


@pytest.fixture(scope="module")
def real(tmp_path_factory, make_network):
    """Folder with net.npz and data.npz: 6 samples of 3 steps, targets 0.25 above what the software answers."""
    folder = tmp_path_factory.mktemp("real")
    network = replace(make_network(26, widths=(3,), outputs=2, alphas=(1.0,)), labels=())
    save_checkpoint(folder / "net.npz", network)
    x = np.random.default_rng(3).uniform(size=(6, 3, 3))
    lengths = np.full(6, 3)
    pooled = pool_readout(run_reference(network, x, lengths).readout, lengths, network.readout.pooling)
    np.savez(folder / "data.npz", x_test=x, y_test=pooled + 0.25)
    return folder


def test_montecarlo_and_its_page(real, cosim_main, tmp_path):
    asked = ["--data", real / "data.npz", "--variation", "none", "--chips", 2, "--jobs", 1]
    out = tmp_path / "mc"
    code, text, err = cosim_main(
        "montecarlo", real / "net.npz", *asked, "--tolerance", 0.5, "--spec", "rmse<=0.5", "-o", out
    )
    assert code == 0, err
    summary = json.loads((out / "summary.json").read_text())
    # the software is off by exactly 0.25; the circuit by what calibration leaves, a few hundredths of a unit
    assert summary["software_rmse"] == pytest.approx(0.25) and summary["software_accuracy"] == 1.0
    assert summary["rmse"]["mean"] == pytest.approx(0.25, abs=0.1)
    assert summary["yield"]["passed"] == 2 and "rmse" in text
    code, _, err = cosim_main("report", out, "--no-waveforms")
    assert code == 0 and "rms error of real-valued answers" in (out / "report.html").read_text()
    tight = ["--tolerance", 0.01, "--spec", "yield>=0.5", "--spec", "accuracy>=0.9", "-o", tmp_path / "tight"]
    code, text, _ = cosim_main("montecarlo", real / "net.npz", *asked, *tight)
    assert code == 1 and "missed" in text


def test_what_does_not_go_together_is_refused(real, tiny, cosim_main, tmp_path):
    asked = ["--chips", 2, "-o", tmp_path / "mc"]
    code, _, err = cosim_main(
        "montecarlo", real / "net.npz", "--data", real / "data.npz", "--spec", "margin>=1pA", *asked
    )
    assert code == 2 and "--spec margin: not a figure of these chips; rmse is of real-valued answers" in err
    code, _, err = cosim_main("montecarlo", tiny / "net.npz", "--data", tiny / "data.npz", "--tolerance", 1, *asked)
    assert code == 2 and "--tolerance is for real-valued targets; this test set has classes, leave it out" in err
    np.savez(tmp_path / "wide.npz", x_test=np.zeros((2, 3, 3)), y_test=np.full((2, 3), 0.5))
    code, _, err = cosim_main("montecarlo", real / "net.npz", "--data", tmp_path / "wide.npz", *asked)
    assert code == 2 and "targets must be 2 numbers a sample, as many as the network has outputs, not 3" in err


@pytest.mark.ngspice
def test_compare_reports_errors_and_specs(real, cosim_main, tmp_path):
    asked = ["--data", real / "data.npz", "--samples", 2, "--jobs", 1, "--tolerance", 0.5, "-o", tmp_path]
    code, text, err = cosim_main("compare", real / "net.npz", *asked, "--spec", "rmse<=0.5", "--spec", "area<=1um2")
    assert code == 1, err
    found = json.loads((tmp_path / "comparison.json").read_text())
    assert found["errors"]["engines"]["software"]["rmse"] == pytest.approx(0.25)
    assert found["errors"]["software_rmse"]["ngspice"] < 0.2  # of units: the readout's calibration and settling
    assert found["measured"]["latency"]["value"] == pytest.approx(0.03)  # 3 frames of 10 ms
    assert [line.split()[-1] for line in text.splitlines() if line.startswith(("rmse<=", "area<="))] == [
        "met",
        "missed",
    ]
    assert (tmp_path / "values.png").exists() and not (tmp_path / "confusion.png").exists()
    assert "<h2>Errors</h2>" in (tmp_path / "report.html").read_text()
