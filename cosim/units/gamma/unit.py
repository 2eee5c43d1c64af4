"""The dispersive delay line as a kind of unit."""

from cosim.network.gamma import GammaLayer
from cosim.units.gamma.circuit import build_gamma, report_gamma
from cosim.units.gamma.equations import decide_gamma, deliver_gamma, gamma_effects, supply_gamma
from cosim.units.gamma.lower import lower_gamma, solve_gamma, takes
from cosim.units.gamma.node import Gamma, GammaFactors, GammaPins
from cosim.units.kind import UnitKind
from cosim.units.mingru.lower import check_frame

GAMMA = UnitKind[Gamma, GammaPins, GammaFactors](
    node=Gamma,
    factors=GammaFactors,
    layers=(GammaLayer,),
    takes=takes,
    lower=lower_gamma,
    bias=solve_gamma,
    build=build_gamma,
    report=report_gamma,
    decide=decide_gamma,
    deliver=deliver_gamma,
    supply=supply_gamma,
    effects=gamma_effects,
    drawings=("tau-cell",),
    pulsed=True,
    slow=True,
    check=check_frame,
)
