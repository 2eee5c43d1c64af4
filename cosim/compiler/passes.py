"""The passes in their order, from a network to its circuit, each with what must hold behind it and at the end."""

from collections.abc import Callable
from typing import Any

from cosim.compiler.around import surround
from cosim.compiler.assemble import assemble
from cosim.compiler.centre import centre
from cosim.compiler.checks import (
    check_feedback,
    check_pulls,
    check_signals,
    check_stages,
    check_units_work,
    check_weights,
)
from cosim.compiler.lower import lower
from cosim.compiler.scale import scale
from cosim.compiler.settings import Job, Settings, Target
from cosim.compiler.size import size
from cosim.design import Design
from cosim.network.types import Network
from cosim.technology.calibration import Calibration
from cosim.technology.scale import check_units, units_for
from cosim.technology.types import Technology

Pass = tuple[str, Callable[[Any, Any], Any], tuple[Callable[[Any, Any], None], ...]]

PASSES: tuple[Pass, ...] = (
    ("lower", lambda network, job: lower(network, job.origin, job.settings.cell, job.settings.headroom),
     (check_weights, check_pulls, check_stages, check_feedback)),
    ("centre", lambda graph, job: centre(graph), ()),
    ("scale", lambda graph, job: scale(graph, job.settings.i_unit), (check_units_work, check_signals)),
    ("size", lambda graph, job: size(graph, job.calibration, origin=job.origin, pedestal=job.settings.pedestal), ()),
    ("assemble", lambda graph, job: Design(
        job.network, job.technology, job.calibration, graph,
        surround(assemble(graph, job.technology, job.calibration, job.settings.slow), graph, job),
    ), ()),
)  # fmt: skip
FOR_TECHNOLOGY = "scale"  # the first pass that needs one


def compile_network(
    network: Network,
    technology: Technology,
    calibration: Calibration,
    settings: Settings = Settings(),
    origin: str = "network",
) -> Design:
    """From trained weights to a circuit.

    Raises MappingError where the network cannot be put on the technology, or its grid of weights not on the
    calibration's unit devices.
    """
    target = Target(network, origin, settings, calibration.units, technology, calibration)
    design = _run(PASSES, target)
    assert isinstance(design, Design)
    for _, _, checks in PASSES:
        for check in checks:
            check(design.graph, target)
    return design


def check_mapping(
    network: Network, settings: Settings = Settings(), origin: str = "network", units: int | None = None
) -> None:
    """Raises the MappingError of `compile_network` as far as it needs no technology: units, rungs, stages, weights.

    `units` per weight 1.0, default by the network's grid.
    """
    names = [name for name, _, _ in PASSES]
    job = Job(network, origin, settings, units or units_for(network.weight_grid))
    _run(PASSES[: names.index(FOR_TECHNOLOGY)], job)


def _run(passes: tuple[Pass, ...], job: Job) -> object:
    """What the last pass gives."""
    check_units(job.network.weight_grid, job.units, job.origin)
    found: object = job.network
    for _, run, checks in passes:
        found = run(found, job)
        for check in checks:
            check(found, job)
    return found
