r"""Table of dialects: netlist, device cards and testbench of one circuit as text for every simulator.

               ngspice, hspice, xyce    spectre                            vacask
    element    m1 d g s b n w= l= m=    m1 (d g s b) n w= l= m=            m1 (d g s b) n w= l= $mfactor=
    block      .subckt a p / .ends      subckt a (p) / ends a              subckt a (p) / ends
    sources    v1 a 0 pwl(..)           v_1 (a 0) vsource type=pwl ..      v_1 (a 0) vsource type="pwl" ..
    long line  + at the next start      + at the next start                \ at the end
    comment    *                        //                                 //
    case       no difference            differs; all names are lower case here
    hierarchy  x1.m1; xyce x1:m1        x1.m1                              x1:m1
    model      ngspice any version;     bsim4 type=n, no level, 4.8        sp_bsim4v8 type=1, 4.8.0 to 4.8.3
               hspice 4.8;
               xyce 4.6.1, 4.7.0, 4.8.2

               ngspice             hspice              xyce                spectre           vacask
    gmin       gmin                gmin and gmindc     device gmin         gmin              gmin
    reltol     reltol              reltol, reli,       timeint reltol,     reltol            reltol
                                   relmos              nonlin reltol
    abstol     abstol              abstol, absmos      nonlin abstol       iabstol           abstol
    vntol      vntol               vntol               timeint abstol      vabstol           vntol
    charge     chgtol, trtol       chgtol, trtol with  none                none              chgtol, tran_lteratio
                                   runlvl=0
    ringing    xmu                 mu                  method=gear         method=gear2only  tran_xmu
    breakpoints not written        not written         not written         not written       tran_fbr
    save       .save v(x.n) i(v)   .probe tran ..      .print tran V(X:N)  save x.n v:p      save v('x:n') i(v)

Everywhere: ground is `0`; a source's current counts from its first node through it to its second. Numbers carry an
exponent and no letter, since `m` and `M` mean the same in SPICE and not in Spectre. A new dialect is
a file and an entry here.
Sources: ngspice manual; Xyce Reference Guide, `.OPTIONS`, `.TRAN` and MOSFET, and its source of BSIM4; Spectre Circuit
Simulator Reference (tran, options) and Components Reference (bsim4), 23.1; VACASK's examples, its lexer and what its
`print device` lists. HSPICE: option names as published decks use them.
docs/reference/dialects.md says which dialects were run.
"""

from cosim.circuit.dialects.dialect import Dialect, with_foundry_devices
from cosim.circuit.dialects.hspice import HSPICE
from cosim.circuit.dialects.ngspice import NGSPICE
from cosim.circuit.dialects.spectre import SPECTRE
from cosim.circuit.dialects.vacask import VACASK
from cosim.circuit.dialects.xyce import XYCE

DIALECTS: tuple[Dialect, ...] = (NGSPICE, SPECTRE, HSPICE, XYCE, VACASK)


def dialect_named(name: str, *, foundry: bool = False) -> Dialect:
    """Return the simulator dialect of this name; it must be the name of one of DIALECTS.

    foundry: whether transistors are devices of the foundry's library (`with_foundry_devices`).
    """
    found = next(dialect for dialect in DIALECTS if dialect.name == name)
    return with_foundry_devices(found) if foundry else found
