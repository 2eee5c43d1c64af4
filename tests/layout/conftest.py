"""gf180mcu as a drawing needs it."""

import pytest

from cosim.technology.catalog import load_technology


@pytest.fixture(scope="session")
def technology(tmp_path_factory):
    """gf180mcu without its models: a drawing needs none."""
    root = tmp_path_factory.mktemp("kits")
    library = root / "gf180mcuD/libs.tech/ngspice/sm141064.ngspice"
    library.parent.mkdir(parents=True)
    library.write_text("")
    return load_technology("gf180mcu", root)
