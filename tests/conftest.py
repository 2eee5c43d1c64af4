"""Simulator tests have three modes: `--ngspice=required` (continuous integration), `auto` (skip without it), `off`."""

import pytest

from cosim.errors import MissingToolError
from cosim.simulation.library import find_ngspice_library


def pytest_addoption(parser):
    parser.addoption(
        "--ngspice", choices=("required", "auto", "off"), default="auto",
        help="tests marked ngspice: fail without libngspice, skip without it, or skip always",
    )  # fmt: skip


@pytest.fixture(scope="session")
def _ngspice_problem(request):
    """Why a simulator test cannot run here; empty if it can."""
    if request.config.getoption("--ngspice") == "off":
        return "switched off by --ngspice=off"
    try:
        find_ngspice_library()
    except MissingToolError as error:
        return str(error)
    return ""


@pytest.fixture(autouse=True)
def _need_ngspice(request, _ngspice_problem):
    if _ngspice_problem and request.node.get_closest_marker("ngspice"):
        if request.config.getoption("--ngspice") == "required":
            pytest.fail(_ngspice_problem, pytrace=False)
        pytest.skip(_ngspice_problem)
