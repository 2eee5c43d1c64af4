"""Noise figures of devices: kept ones are those that ngspice gives, and what does not fit is not used."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import InputError
from cosim.base.resources import models_path
from cosim.base.seal import seal_json, unseal_json
from cosim.technology.catalog import load_technology
from cosim.technology.conditions import at
from cosim.technology.noise import KINDS, NOISE_FILE
from cosim.verbs.calibrate.noise import find_noise, measure_noise, noise_fingerprint


@pytest.mark.ngspice
def test_the_figures_that_come_with_it_are_those_of_ngspice(technology):
    """0.5 %: six digits are kept, and another ngspice converges to its own last digits."""
    kept, measured = find_noise(technology), measure_noise(technology)
    assert kept.fingerprint == measured.fingerprint
    for kind in KINDS:
        mine, theirs = kept.devices[kind], measured.devices[kind]
        for name in ("slopes", "thermal", "gate", "drain", "diode"):
            np.testing.assert_allclose(getattr(mine, name), getattr(theirs, name), rtol=5e-3)


def test_the_card_has_the_noise_that_its_comments_name(technology):
    """Thermal: 2 q I in weak inversion, ntnoi has two to three digits. Flicker: K / (C_ox W L f) at the gate, K as the
    library's head says to one digit, 10 %; the slope is that of 0.1 nA. Physics falls with the current."""
    fit, sizing = find_noise(technology), technology.sizing
    device = fit.devices["cell_p"]
    for one in fit.devices.values():
        assert one.factor(1e-10) == pytest.approx(1.0, abs=0.02)
    for kind, k in (("mirror_n", 5e-25), ("mirror_p", 2e-25), ("cell_n", 5e-25), ("cell_p", 2e-25)):
        one, size = fit.devices[kind], getattr(sizing, kind)
        siemens = 1e-10 / (float(one.slope(1e-10)) * technology.thermal_voltage)
        gate = 2 * 1.602176634e-19 * 1e-10 * float(one.drift(1e-10)) / siemens**2
        assert gate * 3.9 * 8.854e-12 / 7e-9 * size.w * size.l == pytest.approx(k, rel=0.1)
    assert device.physical(1e-11) == pytest.approx(1.0, abs=0.02)
    assert device.physical(8e-9) < device.physical(1e-9) < 1


def test_another_size_or_temperature_is_measured_anew(technology):
    other = replace(technology, sizing=replace(technology.sizing, cell_p=technology.sizing.mirror_p))
    prints = {noise_fingerprint(one) for one in (technology, other, at(technology, celsius=60))}
    assert len(prints) == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: content.update(format=0), "holds no noise figures of format 2"),
        (lambda content: content["devices"].pop("cell_n"), "devices must hold cell_n"),
        (
            lambda content: content["devices"]["cell_n"]["currents"].reverse(),
            "devices.cell_n must hold rising currents",
        ),
        (lambda content: content["devices"]["cell_n"]["thermal"].pop(), "devices.cell_n must hold rising currents"),
    ],
)
def test_damaged_files_are_refused_by_the_field(tmp_path, change, said):
    content = json.loads(unseal_json((models_path() / "devices" / "generic180.noise.json").read_bytes()))
    change(content)
    (tmp_path / "own.json").write_bytes(seal_json(content))
    with pytest.raises(InputError, match=said):
        NOISE_FILE.load(tmp_path / "own.json")


def test_what_is_written_is_read_again(tmp_path):
    fit = find_noise(load_technology("generic180"))
    (tmp_path / "own.json").write_bytes(NOISE_FILE.to_bytes(fit))
    assert NOISE_FILE.load(tmp_path / "own.json").devices == fit.devices
