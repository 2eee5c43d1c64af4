"""The toggle as a kind of unit."""

from cosim.units.epsilon import EPSILON_LAYERS
from cosim.units.kind import UnitKind
from cosim.units.native import settle_within
from cosim.units.toggle.circuit import build_toggle, report_toggle
from cosim.units.toggle.equations import decide_toggle, deliver_toggle, supply_toggle, toggle_effects, turn_toggle
from cosim.units.toggle.lower import lower_toggle, solve_toggle, takes, toggle_points
from cosim.units.toggle.node import Toggle, ToggleFactors, TogglePins

TOGGLE = UnitKind[Toggle, TogglePins, ToggleFactors](
    node=Toggle,
    factors=ToggleFactors,
    layers=EPSILON_LAYERS,
    takes=takes,
    lower=lower_toggle,
    points=toggle_points,
    bias=solve_toggle,
    build=build_toggle,
    report=report_toggle,
    decide=decide_toggle,
    deliver=deliver_toggle,
    supply=supply_toggle,
    effects=toggle_effects,
    turns=turn_toggle,
    resumes=True,
    settles=settle_within,
    drawings=("9T cell", "clocked", "toggle"),
    pulsed=True,
    samples=True,
)
