"""Waveforms by name on the command line, of one sample, in either engine; and what is refused."""

import csv

import numpy as np
import pytest

from cosim.results.figures import DPI

FILES = {"waveforms.png", "waveforms.npz", "waveforms.raw", "waveforms.vcd"}


@pytest.fixture
def options(tiny):
    return (tiny / "net.npz", "--data", tiny / "data.npz", "-j", "1")


@pytest.mark.ngspice
@pytest.mark.parametrize("engine", ["ngspice", "batch"])
def test_one_sample_with_chosen_waveforms(cosim_main, options, tmp_path, engine):
    if engine == "batch":
        pytest.importorskip("numba")
    weight = "layer0.weight[1,2]"
    chosen = ("--sample", "3", "--probe", "layer0.[0]", "--probe", weight)
    code, _, err = cosim_main("simulate", *options, *chosen, "--engine", engine, "-o", tmp_path / "no")
    assert code != 0 and "--probe 'layer0.[0]': no unit and no weight" in err and not (tmp_path / "no").exists()
    chosen = ("--sample", "3", "--probe", "layer0.*", "--probe", weight)
    code, out, _ = cosim_main("simulate", *options, *chosen, "--engine", engine, "-o", tmp_path)
    assert (
        code == 0
        and "1 of 1 samples simulated" in " ".join(out.split())
        and "with waveforms.png, .npz, .raw and .vcd" in out
    )
    assert {path.name for path in tmp_path.iterdir()} >= FILES
    waves, states = np.load(tmp_path / "waveforms.npz"), np.load(tmp_path / "simulation.npz")
    assert states["indices"].tolist() == [3]
    assert {"layer0.0.candidate", "layer0.2.state", weight, "readout.1", "power"} <= set(waves.files)
    assert {"time_s", "in.0", "clk0", "resetb", "units"} <= set(waves.files)  # docs/reference/files.md names them
    read = np.searchsorted(waves["time_s"], (0.5 + np.arange(3) + 0.95) * 10e-3)
    for k, cell in enumerate(states["cells"]):
        np.testing.assert_array_equal(waves[str(cell)][read], states["states"][0, :, k])
    # both read the same run: linear interpolation within a step of at most 2 % of a frame
    found = np.stack([np.interp((0.5 + np.arange(3) + 0.95) * 10e-3, waves["time_s"], waves[f"readout.{k}"])
                      for k in range(2)], axis=1)  # fmt: skip
    np.testing.assert_allclose(found, states["readout_a"][0], atol=1e-12)


@pytest.mark.ngspice
def test_compare_shows_the_chosen_unit(cosim_main, options, tmp_path):
    probes = ("--probe", "layer0.0", "--probe", "layer0.2")
    assert cosim_main("compare", *options, "--samples", "1", *probes, "-o", tmp_path)[0] == 0
    picture = (tmp_path / "waveforms.png").read_bytes()
    lane = 0.16 + 0.12  # inch: one stage
    assert picture[20:24] == round(DPI * (0.9 + lane + 3 * 1.05)).to_bytes(4, "big")  # two units and the power
    page = (tmp_path / "report.html").read_text()
    assert "<h2>The network</h2>" in page and '<div class="zoom">' in page
    assert "<h2>Every parameter and its transistor</h2>" in page


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("simulate", "--sample", "9"), "no sample 9: the test set has samples 0 to 4"),
        (("simulate", "--sample", "1", "--samples", "2"), "--sample runs one sample and --samples a draw of them"),
        (("compare", "--pvt", "--probe", "layer0.1"), "--probe is for a network that compiles whole, without --pvt"),
        (("compare", "--probe", "layer9.*"), "--probe 'layer9.*': no unit and no weight has this name"),
    ],
)
def test_what_is_refused(cosim_main, options, tmp_path, arguments, text):
    verb, *given = arguments
    code, _, err = cosim_main(verb, *options, *given, "-o", tmp_path / "out")
    assert code == 2 and text in err and not (tmp_path / "out").exists()


@pytest.mark.ngspice
def test_names_of_the_mapping_can_be_watched(cosim_main, options, tmp_path):
    """Each weight that has a transistor in mapping.csv is a name for --probe."""
    assert cosim_main("compile", options[0], "-o", tmp_path / "c")[0] == 0
    rows = list(csv.DictReader((tmp_path / "c" / "mapping.csv").read_text().splitlines()))
    built = [row["parameter"] for row in rows if row["unit"] == "1" and row["element"] != "none"]
    probes = [part for name in built for part in ("--probe", name)]
    assert cosim_main("simulate", *options, "--sample", "0", *probes, "-o", tmp_path / "s")[0] == 0
    assert set(built) <= set(np.load(tmp_path / "s" / "waveforms.npz").files)
