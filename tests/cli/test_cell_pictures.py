"""The cells that the manual shows have the sizes that their technologies build."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from cosim.base.errors import MissingToolError
from cosim.technology.catalog import load_technology

pytest.importorskip("torch", reason="the shipped networks are .pt files")
ROOT = Path(__file__).resolve().parents[2]
SPEC = spec_from_file_location("draw_cells", ROOT / "scripts" / "draw_cells.py")
SCRIPT = module_from_spec(SPEC)
SPEC.loader.exec_module(SCRIPT)


@pytest.mark.parametrize("name", SCRIPT.own_sizes())
def test_the_picture_is_that_of_the_technology(name):
    try:
        load_technology(name)
    except MissingToolError as error:
        pytest.skip(str(error))
    assert (ROOT / f"docs/images/cell_{name}.svg").read_bytes() == SCRIPT.draw_cell(name)
