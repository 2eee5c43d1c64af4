"""The Schmitt trigger as a kind of unit."""

from cosim.units.epsilon import EPSILON_LAYERS
from cosim.units.kind import UnitKind
from cosim.units.schmitt.circuit import build_schmitt, report_schmitt
from cosim.units.schmitt.equations import (
    decide_schmitt,
    deliver_schmitt,
    schmitt_effects,
    settle_schmitt,
    stays_on,
    supply_schmitt,
    turn_schmitt,
)
from cosim.units.schmitt.lower import lower_schmitt, schmitt_points, solve_schmitt, takes
from cosim.units.schmitt.node import Schmitt, SchmittBias, SchmittFactors

SCHMITT = UnitKind[Schmitt, SchmittBias, SchmittFactors](
    node=Schmitt,
    factors=SchmittFactors,
    layers=EPSILON_LAYERS,
    takes=takes,
    lower=lower_schmitt,
    points=schmitt_points,
    bias=solve_schmitt,
    build=build_schmitt,
    report=report_schmitt,
    decide=decide_schmitt,
    deliver=deliver_schmitt,
    supply=supply_schmitt,
    effects=schmitt_effects,
    turns=turn_schmitt,
    resumes=True,
    settles=settle_schmitt,
    drawings=("9T cell", "clocked"),
    unreset=stays_on,
    samples=True,
)
