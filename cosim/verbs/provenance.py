"""Provenance at the end of a page: whose figures these are, and what they were made with, each named once."""

from collections.abc import Mapping

from cosim.base.version import __version__
from cosim.compiler.design import Design, network_hash
from cosim.results.page import Facts, PageSubject, Section
from cosim.technology.calibration import Calibration
from cosim.verbs.compile.outputs import summarize
from cosim.verbs.words import network_name, worded

MOVED = ("network", "task", "calibration", "simulator_of_calibration", "technology", "corner", "celsius", "supply_v")


def subject_of(design: Design) -> PageSubject:
    """Return the network that was compiled, as the subject of a page."""
    return PageSubject(network_name(design.network), network_hash(design))


def origins(design: Design, made_with: Mapping[str, str] = {}) -> dict[str, str]:
    """Return hashes and versions of a design for a verb's page. made_with: name of what else ran -> its version."""
    return {"network": network_hash(design), **calibration_origins(design.calibration, made_with)}


def calibration_origins(calibration: Calibration, made_with: Mapping[str, str]) -> dict[str, str]:
    """Return hashes and versions for the page of `cosim characterize`, which has no network.

    made_with: name of what ran -> its version.
    """
    measured = f"{calibration.fingerprint}, measured with {calibration.simulator}"
    return {"calibration": measured, **made_with, "cosim": __version__}


def circuit_facts(design: Design) -> dict[str, object]:
    """Return the design in figures, without those in a page's first lines or in its provenance."""
    return {key: value for key, value in summarize(design).items() if key not in MOVED}


def circuit_section(design: Design) -> Section:
    """Return the section of a page with the design in figures, in words; a detail."""
    return Section("The circuit", (Facts(tuple(worded(circuit_facts(design)))),), detail=True)
