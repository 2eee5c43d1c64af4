"""Mistakes of a new user: each answer says what was given, what must be given, and what repairs it."""

import numpy as np
import pytest

from cosim.cli import main
from cosim.cli.types import read_celsius

torch = pytest.importorskip("torch")
nn = torch.nn


def own():
    """The state dict of a layer of two first-quadrant units and a readout."""
    return {
        "layers.0.weight": torch.tensor([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]]),
        "layers.0.bias": torch.full((2,), 0.25),
        "layers.0.beta_lo": torch.full((2,), 0.15),
        "layers.0.beta_hi": torch.full((2,), 0.85),
        "readout.weight": torch.eye(2),
        "readout.bias": torch.zeros(2),
    }


def under(prefix, arrays):
    return {f"{prefix}{name}": value for name, value in arrays.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files as users have them: checkpoints of other kinds, data in other forms, and what is neither."""
    folder = tmp_path_factory.mktemp("mistakes")
    files = {
        "light.ckpt": {"state_dict": under("model.", own()), "epoch": 3, "pytorch-lightning_version": "2.5"},
        "loop.pt": {"model_state_dict": own(), "optimizer_state_dict": {}, "epoch": 3},
        "parallel.pt": under("module._orig_mod.", own()),
        "two.pt": {"state_dict": {**under("teacher.", own()), **under("student.", own())}},
        "gru.ckpt": {"state_dict": under("model.rnn.", nn.GRU(3, 4).state_dict()), "epoch": 3},
        "lstm.ckpt": {"state_dict": under("model.", nn.LSTM(3, 4).state_dict()), "epoch": 3},
        "mlp.ckpt": {"state_dict": under("model.", nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)).state_dict())},
        "attention.pt": nn.MultiheadAttention(8, 2).state_dict(),
        "unnamed.pt": own(),
    }
    for name, content in files.items():
        torch.save(content, folder / name)
    rng = np.random.default_rng(5)
    x, y = rng.random((12, 4, 3)), np.arange(12) % 2
    data = {
        "gestures": {},
        "float": {"y_train": y.astype(float), "y_test": y.astype(np.float32)},
        "truth": {"y_train": y.astype(bool), "y_test": y.astype(bool)},
        "half": {"y_train": y + 0.5, "y_test": y + 0.5},
        "column": {"y_train": y[:, None], "y_test": y[:, None]},
        "from_one": {"y_train": y + 1, "y_test": y + 1},
        "flat": {"x_train": x[:, :, 0], "x_test": x[:, :, 0]},
    }
    for name, change in data.items():
        arrays = {"x_train": x, "y_train": y, "x_test": x, "y_test": y} | change
        np.savez(folder / f"{name}.npz", **arrays)
    np.savez(folder / "capital.npz", X_train=x, Y_train=y)
    for name in ("README.md", "model.onnx", "cell.sp"):
        (folder / name).write_text("not a network")
    for name in ("empty", "runs"):
        (folder / name).mkdir()
    (folder / "runs" / "best.pt").write_bytes((folder / "unnamed.pt").read_bytes())
    return folder


@pytest.fixture
def typed(folder, monkeypatch, capsys):
    """Run a command line in that folder: exit status, output, errors."""
    monkeypatch.chdir(folder)

    def run(*words):
        monkeypatch.setattr("sys.argv", ["cosim", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code or 0, *capsys.readouterr()

    return run


@pytest.mark.parametrize("file", ["light.ckpt", "loop.pt", "parallel.pt"])
def test_a_network_of_ours_inside_a_training_checkpoint_is_read(typed, file):
    code, out, err = typed("inspect", file)
    assert (code, err) == (0, "")
    assert "layer0   first-quadrant  2 x 3" in out


@pytest.mark.parametrize("data", ["float", "truth"])
def test_labels_that_are_whole_numbers_of_another_type_are_classes(typed, folder, data):
    asked = ("--iterations", 1, "--cells", 2, "--layers", 1, "-o", f"{data}.pt")
    code, _, err = typed("train", "npz", "--data", f"{data}.npz", *asked)
    assert code == 0 and "cosim:" not in err
    assert "labels   0, 1" in typed("inspect", f"{data}.pt")[1]


HYSTERESIS = "units with hysteresis do (BMRU, CMRU)"
CASES = {
    "inspect two.pt": "two.pt: must hold one network, but keys of its layers begin with 'student.' and 'teacher.'",
    "inspect gru.ckpt": "model.rnn.weight_hh_l0 belongs to a GRU, which has no circuit here: only " + HYSTERESIS,
    "inspect lstm.ckpt": "model.weight_hh_l0 belongs to an LSTM, which has no circuit here: only " + HYSTERESIS,
    "inspect mlp.ckpt": "belong to a feed-forward network such as an MLP, which keeps no state; what becomes a circuit",
    "inspect attention.pt": "belong to another kind of network; what becomes a circuit here are units with hysteresis",
    "backbone gestures.npz": "not a path, 'gestures.npz'; for data of your own the task is npz: cosim train npz --data",
    "train flat.npz": "not float64 (12, 4); if there is one feature, give x[:, :, None]",
    "train runs": "not a path, 'runs'; give the folder of a data set with --data: cosim train speech-commands",
    "train README.md": "write an .npz (docs/how-to/train-on-my-data.md): cosim train npz --data FILE.npz",
    "train digit": "not 'digit' (did you mean digits?)",
    "train npz gestures.npz": "unexpected extra argument (gestures.npz); files of data go to --data FILE. See:",
    "train npz --data half.npz": "for classes give whole numbers, y.astype(int), for targets that are real numbers",
    "train npz --data column.npz": "not int64 (12, 1); for classes give y[:, 0]",
    "train npz --data from_one.npz": "not 1, 2; renumber them, with numpy.unique(y, return_inverse=True)[1]",
    "train npz --data flat.npz": "not float64 (12, 4); if there is one feature, give x[:, :, None]",
    "train npz --data capital.npz": "'x_train' is missing; found X_train, Y_train; name them x_train, y_train, ",
    "compile README.md": "README.md: a trained network is needed, not a .md file; give a checkpoint, or a state dict",
    "compile model.onnx": "a trained network is needed, not a .onnx file; give a checkpoint, or a state dict",
    "compile cell.sp": "a trained network is needed, not a netlist; cosim datasheet measures netlists",
    "compile nothing.md": "no such file; give a trained network, for example of `cosim train digits -o model.pt`",
    "simulate empty": "a checkpoint file is needed, not a folder; this one holds no .pt or .npz",
    "simulate runs": "a checkpoint file is needed, not a folder; give one of the files inside it: best.pt",
    "compile unnamed.pt --temp 300K": "must be in celsius, not 300K; 300K is 26.85 C",
    "compile unnamed.pt --temp 80F": "must be a temperature in celsius such as 27 or -40, not 80F",
    "simulate unnamed.pt --samples all": "'all' is not a whole number",
    "compare unnamed.pt": "the network names no task and brings no data; give its test data with --data FILE.npz",
    "compare unnamed.pt gestures.npz": "unexpected extra argument (gestures.npz); files of data go to --data FILE",
    "compare unnamed.pt --data flat.npz": "(12, 4), (12,); if there is one feature, give x[:, :, None]",
    "compare unnamed.pt --data half.npz": "for classes give whole numbers, y.astype(int)",
    "compare unnamed.pt --data from_one.npz": "classes must lie in 0..1 for this network, not 1..2; number them as in",
    "--temp 27 compile unnamed.pt": "no such option '--temp' in front of a verb; options come after it",
}


@pytest.mark.parametrize("line", CASES)
def test_the_answer_names_the_repair(typed, folder, line):
    before = sorted(folder.iterdir())
    code, out, err = typed(*line.split())
    assert (code, out) == (2, "")
    assert err.startswith("cosim: ") and err.count("\n") == 1
    assert CASES[line] in err, err
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("text", ["27", "27C", "27degC", "27 °C", "2.7e1"])
def test_a_temperature_may_have_its_unit(text):
    assert read_celsius(text) == 27.0
