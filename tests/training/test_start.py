"""A training that begins with a network: what it takes over, of every kind of unit, and what it refuses."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cosim.base.errors import InputError  # noqa: E402
from cosim.exchange.checkpoint import load_network, save_checkpoint  # noqa: E402
from cosim.network.types import Network, network_to_arrays  # noqa: E402
from cosim.tasks.memory import generate_copy_first_task, generate_parity_task  # noqa: E402
from cosim.training.config import Architecture, TrainingConfig, read_settings  # noqa: E402
from cosim.training.trainer import TrainingJob, describe_answers, initial_network, run_job  # noqa: E402

TASK = generate_parity_task(steps=8, n_train=60, n_test=20)
CONFIG = TrainingConfig(Architecture(cells=3, layers=2), iterations=20, batch=16, epsilon=0.0)
KINDS = {
    "first-quadrant": {},
    "hidden": {"hidden": 4, "skip": False},
    "taps": {"taps": 2, "input_levels": 1},
    "lines": {"lines": 2},
    "feedback": {"feedback": True},
    "signed": {"unit": "signed"},
    "thresholds by the input": {"unit": "signed", "beta": "input"},
    "register": {"unit": "signed", "cell": "alphacmru", "levels": 8},
    "any value": {"unit": "signed", "cell": "alphacmru"},
    "minGRU": {"unit": "mingru"},
    "ratio": {"unit": "mingru", "gate": "ratio"},
}


def arrays(network: Network) -> dict[str, np.ndarray]:
    return network_to_arrays(network)[0]


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_step_has_the_weights_of_the_network(kind: str) -> None:
    """To single precision, in which cells are trained; seed 9 would begin with other weights."""
    config = dataclasses.replace(CONFIG, architecture=Architecture(cells=3, layers=2, **KINDS[kind]))
    start = initial_network(TrainingJob(config, TASK))
    other = dataclasses.replace(config, seed=9)
    again = initial_network(TrainingJob(other, TASK, start=start))
    wanted, found = arrays(start), arrays(again)
    assert wanted.keys() == found.keys()
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-6, atol=1e-6, err_msg=name)
    fresh = arrays(initial_network(TrainingJob(other, TASK)))
    assert any(not np.allclose(fresh[name], value) for name, value in wanted.items())


def test_a_training_goes_on(tmp_path: Path) -> None:
    """It is repeated to the byte, and a finished one is told from one that began elsewhere."""
    first = run_job(TrainingJob(CONFIG, TASK), tmp_path / "first.pt")
    job = TrainingJob(CONFIG, TASK, start=first)
    second = run_job(job, tmp_path / "second.pt")
    assert second.history["settings"].keys() - first.history["settings"].keys() == {"from"}
    assert second.history["curve"]["loss"][0] < first.history["curve"]["loss"][0]
    run_job(job, tmp_path / "again.pt")
    content = (tmp_path / "second.pt").read_bytes()
    assert (tmp_path / "again.pt").read_bytes() == content
    stamp = (tmp_path / "second.pt").stat().st_mtime_ns
    run_job(job, tmp_path / "second.pt", resume=True)
    assert (tmp_path / "second.pt").stat().st_mtime_ns == stamp
    run_job(dataclasses.replace(job, start=second), tmp_path / "second.pt", resume=True)
    assert (tmp_path / "second.pt").read_bytes() != content


def test_its_encoding_is_the_networks() -> None:
    """Inputs mean what they meant, whatever the range of the samples that the training goes on with."""
    start = initial_network(TrainingJob(CONFIG, TASK))
    shifted = dataclasses.replace(TASK, offset=TASK.offset - 1, scale=2 * TASK.scale)
    found = initial_network(TrainingJob(CONFIG, shifted, start=start)).encoding
    np.testing.assert_array_equal(found.scale, start.encoding.scale)


@pytest.mark.parametrize(("labels", "new"), [(("x", "y"), False), (("0", "1", "2"), True), ((), True)])
def test_other_classes_get_a_readout_of_their_own(labels, new: bool) -> None:
    """Where their number or kind differs; it is that of the seed, and everything else is the network's."""
    other = dataclasses.replace(TASK, labels=labels)
    if not labels:
        other = dataclasses.replace(other, y_train=TASK.y_train[:, None] * 1.0, y_test=TASK.y_test[:, None] * 1.0)
    start = initial_network(TrainingJob(CONFIG, other))
    assert (len(start.readout.bias), start.regression) == (max(len(labels), 1), not labels)
    mine = dataclasses.replace(CONFIG, seed=9)
    found, fresh = (arrays(initial_network(TrainingJob(mine, TASK, start=one))) for one in (start, None))
    for name, value in arrays(start).items():
        if name.startswith("readout") and new:
            np.testing.assert_array_equal(found[name], fresh[name], err_msg=name)
        else:
            np.testing.assert_allclose(found[name], value, rtol=1e-6, atol=1e-6, err_msg=name)
    assert ("begins with random weights" if new else "is kept") in describe_answers(start, TASK)
    assert not describe_answers(initial_network(TrainingJob(CONFIG, TASK)), TASK)


def test_what_another_task_or_architecture_is_told() -> None:
    start = initial_network(TrainingJob(CONFIG, TASK))
    copied = generate_copy_first_task(steps=5, n_train=40, n_test=10)
    with pytest.raises(InputError, match=r"begin with reads 1 features and samples of copy-first-5 have 2; go on with"):
        initial_network(TrainingJob(CONFIG, copied, start=start))
    for change, message in (
        ({"layers": 1}, "this architecture layer1, readout"),
        ({"cells": 5}, r"layer1.weight has shape \(3, .*\(5, "),
        ({"unit": "signed"}, "a SignedCell cannot take over layer1, a FirstQuadrantLayer"),
        ({"skip": False}, "layer2 reads input, layer1 in the network, and layer1"),
    ):
        other = dataclasses.replace(CONFIG, architecture=dataclasses.replace(CONFIG.architecture, **change))
        with pytest.raises(InputError, match=message):
            initial_network(TrainingJob(other, TASK, start=start))


@pytest.mark.parametrize(
    ("own", "other", "message"),
    [
        ({}, {"beta": "input"}, "beta depends on the input in the network, and not in the module"),
        ({"cell": "alphacmru"}, {}, "alpha depends on the input in the module, and not in the network"),
        ({"cell": "alphacmru", "levels": 4}, {"cell": "alphacmru", "levels": 8}, "stores 8 levels, and this module 4"),
        ({"unit": "mingru"}, {"unit": "mingru", "gate": "ratio"}, r"layer1.top is \S+, and that of this module is inf"),
    ],
)
def test_units_that_differ(own: dict, other: dict, message: str) -> None:
    mine, theirs = (
        dataclasses.replace(CONFIG, architecture=Architecture(cells=2, layers=1, **{"unit": "signed", **one}))
        for one in (own, other)
    )
    with pytest.raises(InputError, match=message):
        initial_network(TrainingJob(mine, TASK, start=initial_network(TrainingJob(theirs, TASK))))


def test_settings_are_read_back(tmp_path: Path) -> None:
    annealed = dataclasses.replace(CONFIG, epsilon=None)
    network = run_job(TrainingJob(annealed, TASK), tmp_path / "model.pt")
    assert read_settings(load_network(tmp_path / "model.pt"), "model.pt") == (CONFIG.architecture, 0.0)
    for epsilon in (1, -1.0, 0.5):
        history = {"settings": network.history["settings"] | {"epsilon": epsilon}}
        assert read_settings(dataclasses.replace(network, history=history), "")[1] == epsilon


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (None, "model.pt: the network has no settings of cosim train"),
        ({"architecture": 3}, "no settings of cosim train"),
        ({"architecture": {"cells": "many"}}, "settings.architecture.cells is 'many', which no cosim train writes"),
        ({"architecture": {"cells": True}}, "settings.architecture.cells is True"),
        ({"architecture": {"unit": 3}}, "settings.architecture.unit is 3"),
        ({"architecture": {"unit": "relu"}}, "settings.architecture.unit is 'relu'"),
        ({"architecture": {"beta": "output"}}, "settings.architecture.beta is 'output'"),
        ({"architecture": {"rows": 3}}, "settings.architecture.rows is 3"),
        ({"architecture": {"cells": 10**9}}, "--cells must lie in 1 to 16384"),
        ({"architecture": {}, "epsilon": "low"}, "settings.epsilon must be a number or null, not 'low'"),
        ({"architecture": {}, "epsilon": 3}, r"settings.epsilon must lie in -1 to 1, not 3"),
    ],
)
def test_settings_that_no_training_has(tmp_path: Path, settings: object, message: str) -> None:
    history = {} if settings is None else {"settings": settings}
    network = dataclasses.replace(initial_network(TrainingJob(CONFIG, TASK)), history=history)
    save_checkpoint(tmp_path / "model.pt", network)
    with pytest.raises(InputError, match=message):
        read_settings(load_network(tmp_path / "model.pt"), "model.pt")


def test_what_the_settings_do_not_say_of_the_network() -> None:
    """A file whose settings are those of another network is refused, not changed in silence."""
    taps = dataclasses.replace(CONFIG, architecture=Architecture(cells=2, layers=1, taps=1, input_levels=1))
    start = initial_network(TrainingJob(taps, TASK))
    later = {name: dataclasses.replace(one, frames=3) for name, one in start.late.items()}
    for change, message in (
        ({"late": later}, "the network has delayed signals of "),
        ({"weight_grid": 0.5}, "the network has a grid of weights of 0.5, and its settings 0.125"),
        ({"readout": dataclasses.replace(start.readout, pooling="vote")}, "the network has a pooling of 'vote'"),
    ):
        with pytest.raises(InputError, match=message):
            initial_network(TrainingJob(taps, TASK, start=dataclasses.replace(start, **change)))


def test_a_min_gru_goes_on(cosim_main, tmp_path: Path) -> None:
    """It has no epsilon; the output may not be the network that the training begins with."""
    begun = ["train", "parity", "--cells", 2, "--layers", 1, "--unit", "mingru", "--iterations", 5]
    assert cosim_main(*begun, "-o", tmp_path / "first.pt")[0] == 0
    again = ["train", "parity", "--from", tmp_path / "first.pt", "--iterations", 5]
    code, _, err = cosim_main(*again, "-o", tmp_path / "second.pt")
    assert code == 0, err
    code, _, err = cosim_main(*again, "-o", tmp_path / "first.pt")
    assert code == 2 and "first.pt is the network of --from; choose another file with -o" in err


def test_the_command(cosim_main, tmp_path: Path) -> None:
    """Its architecture comes from the network; an option that asks for another one is refused."""
    first, second = tmp_path / "first.pt", tmp_path / "second.pt"
    begun = ["train", "parity", "--cells", 2, "--layers", 1, "--unit", "signed", "--epsilon", -1, "--no-ramp"]
    assert cosim_main(*begun, "--iterations", 20, "-o", first)[0] == 0
    code, text, err = cosim_main("train", "parity", "--from", first, "--iterations", 10, "--lr", 1e-3, "-o", second)
    assert (code, "checkpoint" in text) == (0, True), err
    old, new = load_network(first), load_network(second)
    assert (
        [layer.width for layer in new.layers] == [2] and new.layers[0].epsilon == -1 and new.encoding.ramp_steps is None
    )
    assert new.history["settings"]["architecture"] == old.history["settings"]["architecture"]
    code, _, err = cosim_main("train", "parity", "--from", first, "--cells", 5, "-o", tmp_path / "third.pt")
    assert code == 2 and "--cells is 5" in err and "has 2; --from keeps the architecture: leave --cells out" in err
    code, _, err = cosim_main("train", "digits", "--from", first, "-o", tmp_path / "third.pt")
    assert code == 2 and "begin with reads 1 features and samples of digits have 8" in err
    assert not (tmp_path / "third.pt").exists()
