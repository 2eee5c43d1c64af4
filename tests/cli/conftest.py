"""The command line as a user types it, and a tiny network with its data."""

import os
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from cosim.exchange.checkpoint import save_checkpoint


@pytest.fixture(scope="module")
def tiny(tmp_path_factory, make_network):
    """Folder with net.npz, one layer of three cells, and data.npz, 5 samples of 3 steps."""
    folder = tmp_path_factory.mktemp("tiny")
    network = make_network(26, widths=(3,), outputs=2, alphas=(1.0,))
    save_checkpoint(folder / "net.npz", network)
    rng = np.random.default_rng(3)
    np.savez(folder / "data.npz", x_test=rng.uniform(size=(5, 3, 3)), y_test=np.array([0, 1, 1, 0, 1]))
    return folder


@pytest.fixture
def cosim_process():
    """The same in a process of its own, with other environment variables."""

    def run(*arguments, **environment):
        done = subprocess.run(
            [sys.executable, "-c", "from cosim.cli import main; main()", *map(str, arguments)],
            capture_output=True,
            text=True,
            env={**os.environ, **environment},
        )
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture
def runner():
    return CliRunner()
