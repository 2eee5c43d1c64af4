"""The seed paper's Figure 4: what its chain does without DPIs backward, and the ladder with the same updates."""

import json

import numpy as np
import pytest

from cosim.cells.ladder import ladder
from cosim.circuit.elements import Instance
from cosim.verbs.characterize.cascade import RUNGS, START, UPDATES, cascade_studies
from cosim.verbs.characterize.ladder import pulse_train, software_levels

ASKED = [2, 3, 3, 3, 2, 3, 4, 4, 3, 2, 2, 1]


def forward_only():
    """A reset empties the chain: the lowest cell has no neighbour that holds it, and each one above follows."""
    levels, level = [], START
    for update in UPDATES:
        level = 0 if update < 0 else min(level + update, RUNGS)
        levels.append(level)
    return levels


def test_the_published_chain_has_no_dpi_backward(technology):
    for backward in (True, False):
        cell = ladder(technology, 8, RUNGS, START, backward=backward)
        dpis = {
            one.name: one.nets[3:-1] for one in cell.elements if isinstance(one, Instance) and one.name[:3] == "dpi"
        }
        assert dpis["dpi1"] == ("u2",)
        assert dpis["dpi3"] == (("u2", "u4") if backward else ("u4",))
        assert ("dpi5" in dpis) == backward


def test_the_input_is_held_for_the_whole_step_as_published():
    published, _, pulsed, _ = cascade_studies().values()
    c, step = published.currents, published.timing.step
    times, amperes = np.array(pulse_train(np.array(UPDATES), c, published.timing, 0.0)).T
    asked = [{1: c.i_set, 0: c.i_retain, -1: c.i_reset}[update] for update in UPDATES]
    for share in (0.02, 0.5, 0.99):
        at = step * (np.arange(len(UPDATES)) + share)
        np.testing.assert_allclose(np.interp(at, times, amperes), asked, rtol=1e-12)
    assert (published.timing.tau, pulsed.timing.tau) == (10e-3, 2.5e-3)
    assert published.timing.pulse == published.timing.step > pulsed.timing.pulse


@pytest.mark.ngspice
def test_figure_4(cosim_main, tmp_path):
    code, out, _ = cosim_main("characterize", "cascade", "-o", tmp_path, "--json", tmp_path / "x.json")
    assert code == 0 and "Figure 4 on generic180: 8 of 12 levels wrong as published, 0 as a ladder" in out
    (condition,) = json.loads((tmp_path / "x.json").read_text())["conditions"]
    assert software_levels(START, UPDATES, RUNGS).tolist() == ASKED
    assert all(chain["expected"] == ASKED for chain in condition["chains"])
    for chain in condition["chains"]:
        assert chain["levels"] == (ASKED if chain["backward"] else forward_only())
        assert chain["wrong"] == sum(a != b for a, b in zip(chain["levels"], ASKED, strict=True))
        assert 5e-9 < chain["power_w"] < 50e-9
    assert (tmp_path / "cascade_tt_27C_1.8V.png").stat().st_size > 10_000
