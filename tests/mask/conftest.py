"""gf180mcu as a drawing needs it."""

import pytest

from cosim.technology.calibration import load_calibration
from cosim.technology.catalog import load_technology
from cosim.verbs.calibrate.find import shipped_path


@pytest.fixture(scope="session")
def gf180mcu(tmp_path_factory):
    """gf180mcu without its models: a drawing needs none."""
    root = tmp_path_factory.mktemp("kits")
    library = root / "gf180mcuD/libs.tech/ngspice/sm141064.ngspice"
    library.parent.mkdir(parents=True)
    library.write_text("")
    return load_technology("gf180mcu", root)


@pytest.fixture(scope="session")
def gf180mcu_calibration():
    """The shipped one, 8 unit devices per weight 1.0."""
    return load_calibration(shipped_path("gf180mcu", 8))
