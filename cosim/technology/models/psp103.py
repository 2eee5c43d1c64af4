"""PSP103, a model of bulk MOS transistors by surface potentials, which simulators load as compiled Verilog-A (OSDI).

VACASK's package has it as the file `psp103v4.osdi`, which implements version 103.4 of the model; the kit's cards are
those of 103.6. Parameters that came later are left out, with a comment: in the open kit they have no effect. cosim runs
these cards in VACASK. ngspice from version 44 on can load the same file, so netlists can be written for it as well.

Cards set the resistances of gate and bulk to 0. That of the gate is below 1 kohm; that of the bulk, up to 35 kohm in
unit devices, carries no direct current but that of junctions. Each resistance would add a node inside of the
transistor, which disturbs the measurement of charges by fast ramps of voltage. A shift `delvto` raises the magnitude of
the threshold in both polarities, unlike BSIM4's; `factuo` multiplies the mobility.
Source: G. Gildenblat et al., IEEE Trans. Electron Devices 53 (2006) 1979; PSP 103.6, CEA-Leti, 2017.
"""

import re

from cosim.technology.models.family import CardForm, ModelFamily

COMPILED = "psp103v4.osdi"
_LATER = re.compile(
    "st2vfbo|ctgo|ctbo|stcto|thecso|stthecso|nsubedgelexp|swsoa|v(gs|gd|gb|ds|db|sb)_max"  # of 103.6, not of 103.4
)
_SERIES = ("rgo", "rint", "rvpoly", "rbulko", "rwello", "rjunso", "rjundo", "rshg")


PSP103 = ModelFamily(
    "PSP103",
    kinds={"psp103va": ""},
    levels=(103.6,),
    simulator="vacask",
    forms={
        "vacask": CardForm(
            "model {name} psp103va (type={sign} {fields})", (f'load "{COMPILED}"',), unknown=_LATER, drain="ids"
        ),
        "ngspice": CardForm(
            ".model {name} psp103va type={sign} {fields}",
            (f"* ngspice 44 or newer: write `osdi PATH/{COMPILED}` into a file .spiceinit beside the testbench",),
            unknown=_LATER, drain="ids",
        ),
    },
    instance={
        **dict.fromkeys(("w", "l", "ad", "as", "pd", "ps", "nrd", "nrs", "ngcon")),
        "nf": 1.0, "m": 1.0, "mult": 1.0, "delvto": 0.0, "factuo": 1.0,
    },
    left_out=frozenset(("level", "type", "tnom")),  # its own `tr` is the temperature of extraction
    oxide=("toxo", 2e-9),
    factor="factuo",
    signed=False,
    fixed=dict.fromkeys(_SERIES, 0.0),
    osdi=True,
)  # fmt: skip
