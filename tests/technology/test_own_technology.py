"""A technology that cosim has never heard of: from a TOML file and a foundry-like library to a simulated cell."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cosim.base.store import make_cached_path
from cosim.cells.benches import mirror_bench
from cosim.circuit.deck import device_sizes
from cosim.circuit.dialects.ngspice import NGSPICE, format_bench
from cosim.cli import main
from cosim.compiler.passes import compile_network
from cosim.engines.engine import Failure
from cosim.engines.ngspice.process import run_bench
from cosim.engines.simulation.testbench import inference_bench
from cosim.exchange.checkpoint import save_checkpoint
from cosim.technology.calibration import write_calibration
from cosim.technology.catalog import load_technology
from cosim.technology.conditions import at
from cosim.technology.foundry import card_name
from cosim.verbs.calibrate.find import cached_name
from cosim.verbs.calibrate.fingerprint import calibration_fingerprint
from cosim.verbs.calibrate.measure import measure_schmitt


@pytest.fixture
def acme_technology(acme):
    return load_technology(str(acme))


def numbers(card):
    """Parameters of one `.model`, without its name."""
    words = card.replace("\n+", "").split()
    return {word.partition("=")[0]: word.partition("=")[2] for word in words if "=" in word}


@pytest.mark.parametrize("size", [(5e-6, 5e-6), (1e-6, 4.815e-6), (1e-6, 1e-6), (0.4e-6, 0.4e-6)])
@pytest.mark.parametrize("polarity", ["n", "p"])
def test_the_disguise_comes_off(acme_technology, technology, polarity, size):
    """Parameter by parameter the card is that of generic180, at the 12 digits that are written."""
    found, expected = (numbers(NGSPICE.devices(one, [(polarity, *size)])) for one in (acme_technology, technology))
    assert found == expected


def test_a_corner_by_its_own_name(acme_technology):
    fast = at(acme_technology, "QUICK")
    assert fast.corner == "ff"
    cards = {polarity: numbers(NGSPICE.devices(fast, [(polarity, 5e-6, 5e-6)])) for polarity in "np"}
    assert (cards["n"]["vth0"], cards["p"]["vth0"]) == ("0.57", "-0.59")  # 30 mV faster, both


def test_a_card_for_every_size_and_its_name_on_every_transistor(acme_technology, calibration, make_network):
    """Compiled with the calibration of the same devices under other names; everything the deck needs stands in it."""
    design = compile_network(make_network(3, outputs=2), acme_technology, calibration)
    deck = format_bench(inference_bench(design, np.array([[0.5, 0.25, 1.0]])))
    sizes = device_sizes(design.assembly.circuit)
    assert len(sizes) > 4
    assert deck.count(".model ") == len(sizes)
    for size in sizes:
        assert f".model {card_name(acme_technology, *size)} " in deck
    assert card_name(acme_technology, "n", 0.4e-6, 1e-6) == "acme_n_w0p4_l1"
    models = {line.split()[5] for line in deck.replace("\n+", "").splitlines() if line.startswith("m")}
    assert models == {card_name(acme_technology, *size) for size in sizes}
    assert "\n.lib" not in deck and "\n.include" not in deck


@pytest.mark.ngspice
def test_mirror_and_9t_cell_are_those_of_generic180(acme_technology, technology, calibration):
    """The same numbers in every card, so the same arithmetic in the simulator; 1e-9 is for the order of sums."""
    waves = [
        run_bench(mirror_bench(one, 8, calibration.mirror.trim, 1e-9, calibration.v_node))
        for one in (acme_technology, technology)
    ]
    for one in waves:
        assert not isinstance(one, Failure), one.detail
    for source in ("n", "p", "push"):
        found, expected = (float(one.through(source)[-1]) for one in waves)
        assert found == pytest.approx(expected, rel=1e-9, abs=0)
        assert abs(found) == pytest.approx(1e-9, rel=0.05, abs=0)
    bias = (0.6e-9, 0.3e-9, 0.9e-9)
    found, expected = (measure_schmitt(one, 8, bias, calibration.v_node) for one in (acme_technology, technology))
    assert found == pytest.approx(expected, rel=1e-9, abs=0)


def test_compile_by_the_command_line(acme, acme_technology, calibration, make_network, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    own = replace(calibration, technology="acme200", fingerprint=calibration_fingerprint(acme_technology, 8))
    write_calibration(make_cached_path(cached_name("acme200", 8)), own)
    save_checkpoint(tmp_path / "net.npz", make_network(26, widths=(3,), outputs=2, alphas=(1.0,)))
    arguments = ["compile", tmp_path / "net.npz", "--technology", acme, "--corner", "quick", "-o", tmp_path / "out"]
    monkeypatch.setattr("sys.argv", ["cosim", *map(str, arguments)])
    with pytest.raises(SystemExit) as done:
        main()
    assert not done.value.code
    assert "on acme200" in capsys.readouterr().out
    assert json.loads((tmp_path / "out" / "design.json").read_text())["technology"] == "acme200"
    assert "from acme.lib, section Quick" in (tmp_path / "out" / "devices.lib").read_text()
    monkeypatch.setattr("sys.argv", ["cosim", *map(str, arguments[:-4]), "--corner", "ss", "-o", str(tmp_path / "no")])
    with pytest.raises(SystemExit) as error:
        main()
    assert error.value.code == 2
    assert "corner must be one of tt (Nominal), ff (Quick) for acme200, not 'ss'" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()
