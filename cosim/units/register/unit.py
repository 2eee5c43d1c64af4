"""The thermometer register as a kind of unit."""

from cosim.network.layers import SignedLayer
from cosim.units.kind import UnitKind
from cosim.units.native import settle_within, window_points
from cosim.units.register.circuit import build_register, report_register
from cosim.units.register.equations import (
    decide_register,
    deliver_register,
    register_effects,
    supply_register,
    turn_register,
)
from cosim.units.register.lower import lower_register, solve_register, takes
from cosim.units.register.node import Register, RegisterFactors, RegisterPins

REGISTER = UnitKind[Register, RegisterPins, RegisterFactors](
    node=Register,
    factors=RegisterFactors,
    layers=(SignedLayer,),
    takes=takes,
    lower=lower_register,
    points=window_points,
    bias=solve_register,
    build=build_register,
    report=report_register,
    decide=decide_register,
    deliver=deliver_register,
    supply=supply_register,
    effects=register_effects,
    turns=turn_register,
    resumes=True,
    settles=settle_within,
    drawings=("register", "level"),
    pulsed=True,
    samples=True,
)
