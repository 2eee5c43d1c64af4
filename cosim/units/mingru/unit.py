"""The minGRU as a kind of unit."""

from cosim.network.layers import MinGruLayer
from cosim.units.kind import UnitKind
from cosim.units.mingru.circuit import build_mingru, report_mingru
from cosim.units.mingru.equations import decide_mingru, deliver_mingru, mingru_effects, supply_mingru
from cosim.units.mingru.lower import check_frame, lower_mingru, solve_mingru, takes
from cosim.units.mingru.node import MinGru, MinGruFactors, MinGruPins

MINGRU = UnitKind[MinGru, MinGruPins, MinGruFactors](
    node=MinGru,
    factors=MinGruFactors,
    layers=(MinGruLayer,),
    takes=takes,
    lower=lower_mingru,
    bias=solve_mingru,
    build=build_mingru,
    report=report_mingru,
    decide=decide_mingru,
    deliver=deliver_mingru,
    supply=supply_mingru,
    effects=mingru_effects,
    drawings=("tau-cell",),
    pulsed=True,
    slow=True,
    check=check_frame,
)
