"""BSIM4, Berkeley's model of bulk MOS transistors, which comes with every simulator that cosim writes netlists for.

Cards leave out what has no effect at nanoampere: diffusion and substrate resistances (`rbodymod`, below 1 kohm, but
three more nodes per transistor), and checks of parameters, which write files (`paramchk`). A threshold shift `delvto`
is added to `vth0`, which is negative in a p device; `mulu0` multiplies `u0`.
Source: BSIM4.8.1 MOSFET Model, User's Manual, University of California, Berkeley, 2017.
"""

import re

from cosim.technology.models.family import CardForm, ModelFamily

_SPICE_CARD = ".model {name} {polarity}mos level=54 {fields}"
# limits of the operating range that ngspice warns about, and Berkeley's model does not have
_NGSPICE_ONLY = re.compile(r"v(gs|gd|gb|ds|bs|bd)r?_max")
_SPICE_LIBRARY = ".lib 'FILE' {}"


def _two_numbers(version: str) -> str:
    """Return the first two numbers of a version (4.8 of 4.8.1), as cards of HSPICE and Spectre state it.

    The third number stands for corrections of errors only.
    """
    return ".".join(version.split(".")[:2])


def _in_xyce(version: str) -> str:
    """Return the nearest to a card's version among Xyce's three; an older card runs as 4.6.1."""
    minor = int(version.partition(".")[2][:1] or "0")
    return "4.8.2" if minor >= 8 else "4.7.0" if minor == 7 else "4.6.1"


def _in_vacask(version: str) -> str:
    """Return the version for VACASK's model that is nearest to a card's own.

    VACASK's sp_bsim4v8 knows 4.8 and its corrections; an older card runs as 4.8.0.
    """
    return version if re.fullmatch(r"4\.8(\.[0-3])?", version) else "4.8.0"


BSIM4 = ModelFamily(
    "BSIM4",
    kinds={"nmos": "n", "pmos": "p"},
    levels=(14, 54),  # ngspice's level, HSPICE's
    simulator="ngspice",
    forms={
        "ngspice": CardForm(".model {name} {polarity}mos level=14 {fields}"),
        "spectre": CardForm(
            "model {name} bsim4 type={polarity} {fields}", ("simulator lang=spectre",), _two_numbers,
            unknown=_NGSPICE_ONLY, include='include "FILE" section={}',
        ),
        # HSPICE's own default of tnom is 25 C
        "hspice": CardForm(
            _SPICE_CARD, version=_two_numbers, defaults=(("tnom", 27.0),), unknown=_NGSPICE_ONLY,
            include=_SPICE_LIBRARY,
        ),
        "xyce": CardForm(_SPICE_CARD, version=_in_xyce, unknown=_NGSPICE_ONLY, include=_SPICE_LIBRARY),
        # tnoimod=1 adds inner nodes of source and drain in VACASK, tied by 1e3 S; beside that the conductance of a
        # device that is off rounds to zero. tnoimod only divides thermal noise, so that 0 changes nothing else.
        "vacask": CardForm(
            "model {name} sp_bsim4v8 (type={sign} {fields})", ('load "spice/bsim4v8.osdi"',), _in_vacask,
            'version="{}"', replaced=(("tnoimod", 0.0),), unknown=_NGSPICE_ONLY,
        ),
    },
    instance={
        **dict.fromkeys(("w", "l", "ad", "as", "pd", "ps", "nrd", "nrs", "delvto", "delvt0", "mulu0")),
        "nf": 1.0, "m": 1.0,
    },
    left_out=frozenset(("version", "lmin", "lmax", "wmin", "wmax", "paramchk", "rbodymod")),
    oxide=("toxe", 3e-9),
    threshold="vth0",
    mobility="u0",
)  # fmt: skip
