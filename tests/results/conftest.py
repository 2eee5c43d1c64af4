"""Pages of every verb."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def every_page():
    """The module of every_page.py."""
    spec = spec_from_file_location("every_page", Path(__file__).parent / "every_page.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
