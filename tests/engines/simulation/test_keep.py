"""Kept inferences: nothing that changed on the disk is read back, nor anything that no inference could be."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.base.store import damaged_results
from cosim.engines.engine import Inference
from cosim.engines.simulation import inference
from cosim.engines.simulation.inference import deck_hash
from cosim.engines.simulation.read import Meter, ReadPlan

DECK = "* a deck\n"
PLAN = ReadPlan(
    (("a",), ("b", "c")), ("o0", "o1", "o2"), (), 0.5, np.arange(4.0), (0.0, 4.0), (Meter("m"),), np.zeros((5, 2))
)


@pytest.fixture
def found():
    rng = np.random.default_rng(8)
    states = np.array([[0, 2], [1, 0], [1, 1], [0, 0]], dtype=np.int16)
    return Inference(states, rng.normal(size=(4, 3)), 3e-7, rng.normal(size=(5, 1)))


def kept(folder, plan=PLAN):
    return inference._load(folder, deck_hash(DECK), plan)


def test_it_comes_back(tmp_path, found):
    inference._save(tmp_path, deck_hash(DECK), found)
    again = kept(tmp_path)
    for name in ("states", "readout", "power_w", "delivered"):
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))
    assert damaged_results(tmp_path) == (1, [])


def test_no_flipped_bit_is_read_back(tmp_path, found):
    inference._save(tmp_path, deck_hash(DECK), found)
    path = tmp_path / f"{deck_hash(DECK)}.npz"
    content = path.read_bytes()
    for byte in range(0, len(content), 3):
        changed = bytearray(content)
        changed[byte] ^= 1 << byte % 8
        path.write_bytes(changed)
        assert kept(tmp_path) is None
    assert damaged_results(tmp_path) == (1, [path.name])


def test_a_result_of_another_deck_under_this_name(tmp_path, found):
    inference._save(tmp_path, deck_hash("* another\n"), found)
    (tmp_path / f"{deck_hash('* another' + chr(10))}.npz").rename(tmp_path / f"{deck_hash(DECK)}.npz")
    assert kept(tmp_path) is None


@pytest.mark.parametrize(
    "change",
    [
        {"states": np.full((4, 2), 2, dtype=np.int16)},  # the first memory has one rung
        {"states": np.full((4, 2), -1, dtype=np.int16)},
        {"states": np.zeros((4, 2))},
        {"states": np.zeros((3, 2), dtype=np.int16)},
        {"readout": np.full((4, 3), np.nan)},
        {"readout": np.zeros((4, 2))},
        {"readout": np.zeros((4, 3), dtype=np.float32)},
        {"power_w": float("inf")},
        {"power_w": np.zeros(2)},
        {"delivered": np.full((5, 1), np.nan)},
        {"delivered": np.zeros((5, 2))},
    ],
)
def test_what_no_inference_could_be(tmp_path, found, change):
    """With a checksum that fits: a plan of other times, or a cosim that kept something else."""
    inference._save(tmp_path, deck_hash(DECK), replace(found, **change))
    assert kept(tmp_path) is None


def test_the_file_of_a_cosim_without_checksums(tmp_path, found):
    arrays = {name: getattr(found, name) for name in ("states", "readout", "power_w", "delivered")}
    np.savez(tmp_path / f"{deck_hash(DECK)}.npz", **arrays)
    assert kept(tmp_path) is None
