"""Provenance for the end of a page: hashes of network and calibration, and versions of the tools."""

from collections.abc import Mapping

from cosim.base.version import __version__
from cosim.compiler.design import Design, network_hash
from cosim.results.page import Facts, PageSubject, Section
from cosim.technology.calibration import Calibration
from cosim.verbs.compile.outputs import summarize
from cosim.verbs.words import network_name, worded

MOVED = ("network", "task", "calibration", "simulator_of_calibration", "technology", "corner", "celsius", "supply_v")


def subject_of(design: Design) -> PageSubject:
    """Return the subject of a page: the name and the hash of a design's network."""
    return PageSubject(network_name(design.network), network_hash(design))


def origins(design: Design, made_with: Mapping[str, str] = {}) -> dict[str, str]:
    """Return what a page's figures were made with: network hash, calibration, versions.
    made_with: name of each other tool that ran -> its version."""
    return {"network": network_hash(design), **calibration_origins(design.calibration, made_with)}


def calibration_origins(calibration: Calibration, made_with: Mapping[str, str]) -> dict[str, str]:
    """Return what the page of a characterised cell was made with: calibration and versions, without a network.

    made_with: name of each tool that ran -> its version.
    """
    measured = f"{calibration.fingerprint}, measured with {calibration.simulator}"
    return {"calibration": measured, **made_with, "cosim": __version__}


def circuit_facts(design: Design) -> dict[str, object]:
    """Return a design's summary (name -> figure), without what a page says in its first lines or its provenance."""
    return {key: value for key, value in summarize(design).items() if key not in MOVED}


def circuit_section(design: Design) -> Section:
    """Return the section of a page that lists a design's figures; it is marked as a detail."""
    return Section("The circuit", (Facts(tuple(worded(circuit_facts(design)))),), detail=True)
