"""The bundled files are found in a checkout and in a wheel; a wrong name is answered with the right ones."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import cosim
from cosim.base import resources
from cosim.base.errors import InputError

CHECKOUT = Path(cosim.__file__).resolve().parents[1]


@pytest.fixture
def bundle(tmp_path, monkeypatch):
    """A package without a checkout around it, as a wheel installs it."""
    package = tmp_path / "site-packages" / "cosim"
    for path in ("devices/plain.lib", "devices/plain.calibration.json", "trained/toy.npz"):
        file = package / "_data" / "models" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(path)
    monkeypatch.setattr(resources, "_PACKAGE", package)
    return package


def test_checkout_is_read_where_it_stands():
    assert resources.models_path() == CHECKOUT / "models"


@pytest.mark.parametrize("name", ["plain", "plain.lib"])
def test_device_model_with_and_without_suffix(bundle, name):
    assert resources.device_model_path(name).read_text() == "devices/plain.lib"


def test_other_file_of_a_device_by_its_full_name(bundle):
    assert resources.device_model_path("plain.calibration.json").read_text() == "devices/plain.calibration.json"


def test_trained_network(bundle):
    assert resources.trained_network_path("toy").read_text() == "trained/toy.npz"


def test_checkout_wins_over_packaged_copy(bundle):
    (bundle.parent / "models" / "devices").mkdir(parents=True)
    assert resources.models_path() == bundle.parent / "models"


def test_unknown_name_lists_the_known(bundle):
    with pytest.raises(InputError, match=r"device model 'plane' does not come with cosim; there are: .*plain\.lib"):
        resources.device_model_path("plane")
    with pytest.raises(InputError, match=r"trained network 'tay' does not come with cosim; there are: toy\.npz"):
        resources.trained_network_path("tay")


@pytest.mark.parametrize("name", ["", "../secret", "/etc/passwd"])
def test_a_path_is_no_name(bundle, name):
    with pytest.raises(InputError, match="must be a plain name"):
        resources.device_model_path(name)


def test_lost_models_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path / "cosim")
    with pytest.raises(InputError, match="found neither; install cosim again"):
        resources.models_path()


def test_wheel_carries_package_and_models(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=CHECKOUT, check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    (wheel,) = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    models = {path.relative_to(CHECKOUT) for path in (CHECKOUT / "models").rglob("*") if path.is_file()}
    assert {f"cosim/_data/{path.as_posix()}" for path in models} <= packed
    assert {"cosim/__init__.py", "cosim/py.typed", "cosim/base/resources.py"} <= packed
