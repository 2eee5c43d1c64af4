"""The ladder as a kind of unit."""

from cosim.units.epsilon import EPSILON_LAYERS
from cosim.units.kind import UnitKind
from cosim.units.ladder.circuit import build_ladder, report_ladder
from cosim.units.ladder.equations import decide_ladder, deliver_ladder, ladder_effects, supply_ladder, turn_ladder
from cosim.units.ladder.lower import check_frame, lower_ladder, solve_pins, takes
from cosim.units.ladder.node import Ladder, LadderFactors, LadderPins
from cosim.units.native import settle_within, window_points

LADDER = UnitKind[Ladder, LadderPins, LadderFactors](
    node=Ladder,
    factors=LadderFactors,
    layers=EPSILON_LAYERS,
    takes=takes,
    lower=lower_ladder,
    points=window_points,
    bias=solve_pins,
    build=build_ladder,
    report=report_ladder,
    decide=decide_ladder,
    deliver=deliver_ladder,
    supply=supply_ladder,
    effects=ladder_effects,
    turns=turn_ladder,
    resumes=True,
    settles=settle_within,
    drawings=("9T cell", "quantiser", "ladder", "DPI"),
    pulsed=True,
    slow=True,
    check=check_frame,
    samples=True,
)
