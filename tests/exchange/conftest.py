"""The stand-in for the package `nir`."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def nir():
    spec = spec_from_file_location("standin", Path(__file__).parent / "standin.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
