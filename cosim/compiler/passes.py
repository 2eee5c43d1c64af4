"""The passes in their order, from a network to its circuit, each with what must hold behind it and at the end."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cosim.base.errors import MappingError, UnitCurrentError
from cosim.compiler.around import surround
from cosim.compiler.assemble import assemble
from cosim.compiler.centre import centre
from cosim.compiler.checks import (
    check_feedback,
    check_pulls,
    check_set_points,
    check_signals,
    check_stages,
    check_units_work,
    check_weights,
)
from cosim.compiler.constant import leave_out_constants
from cosim.compiler.design import Design
from cosim.compiler.lower import lower
from cosim.compiler.scale import scale
from cosim.compiler.settings import CompilationJob, CompilerSettings, Target
from cosim.compiler.size import size
from cosim.compiler.unit_current import advise_unit_current
from cosim.network.ir.graph import Lowered
from cosim.network.types import Network
from cosim.technology.calibration import Calibration
from cosim.technology.scale import check_units, units_for
from cosim.technology.types import Technology

Pass = tuple[str, Callable[[Any, Any], Any], tuple[Callable[[Any, Any], None], ...]]

PASSES: tuple[Pass, ...] = (
    ("lower", lambda network, job: lower(network, job.origin, job.settings.cell, job.settings.headroom),
     (check_weights, check_pulls, check_stages, check_feedback)),
    ("constant", lambda graph, job: leave_out_constants(graph, job.units), (check_weights, check_stages)),
    ("centre", lambda graph, job: centre(graph), ()),
    ("scale", lambda graph, job: scale(graph, job.settings.i_unit),
     (check_units_work, check_signals, check_set_points)),
    ("size", lambda graph, job: size(graph, job.calibration, origin=job.origin, pedestal=job.settings.pedestal), ()),
    ("assemble", lambda graph, job: Design(
        job.network, job.technology, job.calibration, graph,
        surround(assemble(graph, job.technology, job.calibration, job.settings.slow), graph, job),
    ), ()),
)  # fmt: skip
FOR_TECHNOLOGY = "scale"  # the first pass that needs one
AFTER_SIZES = "assemble"  # the first pass behind everything that may refuse the network's values


def compile_network(
    network: Network,
    technology: Technology,
    calibration: Calibration,
    settings: CompilerSettings = CompilerSettings(),
    origin: str = "network",
) -> Design:
    """Compile trained weights to a circuit.

    Raises MappingError where the network cannot be put on the technology, or its grid of weights not on the
    calibration's unit devices.
    """
    target = Target(network, origin, settings, calibration.units, technology, calibration)
    sized = _size(target)
    design = _run(PASSES[_place(AFTER_SIZES) :], target, sized)
    assert isinstance(design, Design)
    for _, _, checks in PASSES:
        for check in checks:
            check(design.graph, target)
    return design


def check_sizes(network: Network, technology: Technology, calibration: Calibration, origin: str = "network") -> None:
    """Raises the MappingError of `compile_network` without options, and makes no circuit."""
    _size(Target(network, origin, CompilerSettings(), calibration.units, technology, calibration))


def _size(target: Target) -> object:
    """Return the sized graph. Raises MappingError, with a unit current that suits where there is one."""
    first, end = _place(FOR_TECHNOLOGY), _place(AFTER_SIZES)
    found, sizing = _run(PASSES[:first], target, target.network), PASSES[first:end]

    def refused(i_unit: float) -> str:
        try:
            _run(sizing, replace(target, settings=replace(target.settings, i_unit=i_unit)), found)
        except MappingError as error:
            return str(error).removeprefix(f"{target.origin}: ")
        return ""

    try:
        return _run(sizing, target, found)
    except UnitCurrentError as error:
        assert isinstance(found, Lowered)
        advice = advise_unit_current(found, target.settings.i_unit, refused, target.technology.name)
        raise error.reworded(f"{error}; {advice}", MappingError) from None


def constant_cells(network: Network) -> dict[str, int]:
    """Return the cells that are not built, because no input changes their state, with that; none without a circuit."""
    job = CompilationJob(network, "network", CompilerSettings(saturate=True), units_for(network.weight_grid))
    try:
        found = _run(PASSES[: _place(FOR_TECHNOLOGY)], job, network)
    except MappingError:
        return {}
    assert isinstance(found, Lowered)
    return dict(found.left_out.states)


def check_mapping(
    network: Network, settings: CompilerSettings = CompilerSettings(), origin: str = "network", units: int | None = None
) -> None:
    """Raises the MappingError of `compile_network` as far as it needs no technology: units, rungs, stages, weights.

    `units` per weight 1.0, default by the network's grid.
    """
    job = CompilationJob(network, origin, settings, units or units_for(network.weight_grid))
    _run(PASSES[: _place(FOR_TECHNOLOGY)], job, network)


def _place(name: str) -> int:
    """Return the place of a pass among all."""
    return [one for one, _, _ in PASSES].index(name)


def _run(passes: tuple[Pass, ...], job: CompilationJob, found: object) -> object:
    """Return the result of the last pass; the first pass takes `found`."""
    check_units(job.network.weight_grid, job.units, job.origin)
    for _, run, checks in passes:
        found = run(found, job)
        for check in checks:
            check(found, job)
    return found
