"""Waveform files, read back: by numpy, by ngspice's own `load`, and change by change."""

import io
import json
import re

import numpy as np
import pytest

from cosim.verbs.simulate.waveforms import (
    FILES,
    ProbedInference,
    format_raw,
    format_vcd,
    format_waveforms,
    plain_names,
)


@pytest.fixture(scope="module")
def recorded():
    rng = np.random.default_rng(5)
    time = np.cumsum(rng.uniform(1e-7, 1e-3, 57))
    names = ("in.0", "layer1.2.state", "layer1.weight[0,3]", "power")
    states = {"layer1.2": rng.integers(0, 2, 57).astype(np.int16), "ladder.0": rng.integers(0, 10, 57).astype(np.int16)}
    vectors = {name: rng.normal(scale=1e-9, size=57) for name in names}
    return ProbedInference(time, vectors, states, {"clk0": (np.arange(57) % 4 > 1).astype(np.int16)})


def read_npz(content):
    return np.load(io.BytesIO(content))


def test_npz_has_every_vector_with_its_unit(recorded):
    found = read_npz(format_waveforms(recorded, "a title")["waveforms.npz"])
    units = json.loads(str(found["units"]))
    assert set(units) == set(found.files) - {"units"}
    assert (units["time_s"], units["in.0"], units["power"], units["ladder.0"]) == ("s", "A", "W", "1")
    for name, values in {**recorded.vectors, **recorded.states, **recorded.logic}.items():
        np.testing.assert_array_equal(found[name], values)


@pytest.mark.ngspice
@pytest.mark.parametrize("title", ["digits, test sample 3", "two\nlines: größe\nBinary:\n"])
def test_ngspice_loads_the_raw_file(recorded, tmp_path, title, in_ngspice):
    files = format_waveforms(recorded, title)
    (tmp_path / "w.raw").write_bytes(files["waveforms.raw"])
    load = f"load {tmp_path / 'w.raw'}"
    loaded, _ = in_ngspice(f"session.command({load!r})\nfound = session.plot(session.shared.last_plot)")
    npz = read_npz(files["waveforms.npz"])
    pairs = {
        "time": "time_s", "in_0": "in.0", "layer1_2_state": "layer1.2.state", "layer1_weight_0_3": "layer1.weight[0,3]",
        "power": "power", "layer1_2_s": "layer1.2", "ladder_0_s": "ladder.0", "clk0": "clk0",
    }  # fmt: skip
    assert set(loaded) == set(pairs)
    for plain, name in pairs.items():
        np.testing.assert_array_equal(loaded[plain], npz[name])  # doubles in both: equal to the bit


def test_value_changes_give_every_state_back(recorded):
    head, _, body = format_vcd(recorded).partition("$enddefinitions $end\n")
    codes = dict(re.findall(r"\$var wire \d+ (\S+) (\S+) \$end", head))
    assert "$var wire 4 " in head  # of a ladder of up to 9
    now, at = {}, {}
    for line in body.splitlines():
        if line.startswith("#"):
            tick = int(line[1:])
            at[tick] = now = dict(now)
        else:
            value, code = re.fullmatch(r"b([01]+) (\S+)|([01])(\S+)", line).group(
                *((1, 2) if line[0] == "b" else (3, 4))
            )
            now[codes[code]] = int(value, 2)
    ticks = np.array(sorted(at))
    for k, time in enumerate(np.rint(1e9 * recorded.time).astype(int)):
        values = at[int(ticks[ticks <= time][-1])]
        assert values == {
            "clk0": recorded.logic["clk0"][k],
            "layer1_2": recorded.states["layer1.2"][k],
            "ladder_0": recorded.states["ladder.0"][k],
        }


def test_the_same_bytes_twice_and_no_date(recorded):
    assert format_waveforms(recorded, "t") == format_waveforms(recorded, "t")
    assert tuple(format_waveforms(recorded, "t")) == FILES
    assert b"Date: none" in format_raw(recorded, "t")


def test_plain_names_stay_apart():
    names = ("a.1", "a_1", "a[1]", "A.1", "*")
    found = plain_names(names)
    assert len(set(found.values())) == len(names) and found["a.1"] == "a_1" and found["*"] == "vector"
    assert all(re.fullmatch(r"[a-z0-9_]+", name) for name in found.values())
