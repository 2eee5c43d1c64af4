"""A fictional process as a foundry would ship it, which is generic180 in disguise: any error of reading it shows."""

import pytest

from cosim.circuit.bench import PRECISE
from cosim.circuit.dialects.ngspice import format_deck, format_options
from cosim.circuit.elements import Circuit, Mos, Source

TOML = """\
name = "acme200"
summary = "fictional 200 nm process"
grid = 5e-9
supply = 1.8
supply_max = 2.0
celsius = 27
capacitor_density = 2e-3

[library]
file = "acme.lib"
also = ["switches.inc"]
length_unit = 1e-6
diffusion = 0

[corners]
tt = "Nominal"
ff = "Quick"

[nfet]
device = "acme_n"
a_vt = 5e-9
a_beta = 0
slope_factor = 1.32

[pfet]
device = "acme_p"
a_vt = 5e-9
a_beta = 0
slope_factor = 1.31

[sizing]
mirror_n = { w = 1e-6, l = 5e-6 }
mirror_p = { w = 1e-6, l = 5e-6 }
cell_n = { w = 5e-6, l = 5e-6 }
cell_p = { w = 5e-6, l = 5e-6 }
latch_switch = { w = 1e-6, l = 1e-6 }
sample_switch = { w = 0.4e-6, l = 0.4e-6 }
"""

# w and l in micrometre; n: bins inside the subcircuit; p: bins beside it. Threshold and mobility of every bin are off,
# and the subcircuit puts them right: delvto and mulu0 count, and so does which bin it is.
LIB = """\
* ACME 200 nm, devices for 2 V
.lib Nominal
.param n_Shift = 0  p_shift = {0*n_shift}   $ typical
.lib 'acme.lib' Core
.endl Nominal

.lib Quick
.param n_shift='-0.03*drift' p_shift = 30m
.lib "acme.lib" core
.endl

.lib core
.include Drift.inc
.include p_models.inc
.subckt acme_n d g s b w=1 l=1 mult=1
+ ad=0
.param spread = 'agauss(0, 5m/sqrt(w*l), 1)*mismatch'
M1 d g s b acme_n_core W='w*1e-6' L='l*1e-6' m=mult ; the device
+ delvto='(l<2)*0.08 + (l>=2)*0.05 + n_shift*drift + spread' mulu0='5/4 + spread'
.model acme_n_core.1 NMOS level=14 version=4.8.1 tnom=27 lmin=0.2u lmax=2u wmin=0.3u wmax=100u vth0=0.52
+ u0=0.032 k1='0.65+0.05*l/l' {n}
.model acme_n_core.2 NMOS level=14 version=4.8.1 tnom=27 lmin=2u lmax=20u wmin=0.3u wmax=100u vth0=0.55
+ u0=0.032 k1=0.7 {n}
.ends acme_n
.subckt acme_p d g s b w=1 l=1 mult=1
m1 d g s b acme_p_core w='w*1e-6' l='l*1e-6' m=mult delvto='p_shift-0.02*(w>2)' mulu0=0.5
.ends
.endl core
"""
N = (
    "toxe=7e-9 toxp=7e-9 toxm=7e-9 ndep=2e17 nsd=1e20 phin=0 xj=1.5e-7 k2=-0.02 dvt0=1.5 dvt1=0.6 lpe0=5e-8\n"
    "+ nfactor=1.0 voff=-0.10 cdsc=2e-4 eta0=0.06 etab=-0.05 dsub=0.5 ua=1e-9 ub=1e-18 vsat=9e4 rdsw=200\n"
    "+ pclm=0.30 pdiblc1=0.2 pdiblc2=0.0005 drout=0.5 pvag=0.1 igcmod=0 igbmod=0 cgso=2e-10 cgdo=2e-10 cgbo=0\n"
    "+ cjs=1e-3 cjsws=2e-10 jss=1e-8 jsws=1e-14 kt1=-0.3 ute=-1.5\n"
    "+ tnoimod=0 ntnoi=0.565 fnoimod=1 noia=3.3e41 noib=1.65e26 noic=8.75e9"
)
P = (
    "level=14 version=4.8.1 tnom=27 toxe=7e-9 toxp=7e-9 toxm=7e-9 ndep=1.5e17 nsd=1e20 phin=0 xj=1.5e-7\n"
    "+ k1=0.60 k2=0.0 dvt0=1.5 dvt1=0.6 lpe0=5e-8 nfactor=1.0 voff=-0.10 cdsc=2e-4 eta0=0.06 etab=-0.05 dsub=0.5\n"
    "+ u0=0.020 ua=1e-9 ub=1e-18 vsat=7e4 rdsw=400 pclm=0.30 pdiblc1=0.2 pdiblc2=0.0005 drout=0.5 pvag=0.1\n"
    "+ igcmod=0 igbmod=0 cgso=2e-10 cgdo=2e-10 cgbo=0 cjs=1e-3 cjsws=2e-10 jss=1e-8 jsws=1e-14 kt1=-0.3 ute=-1.2\n"
    "+ tnoimod=0 ntnoi=0.58 fnoimod=1 noia=1.3e41 noib=3.15e25 noic=8.75e9"
)
P_MODELS = f"""\
.model acme_p_core.1 pmos lmin=0.2u lmax=20u wmin=0.3u wmax=2u vth0=-0.62 {P}
.model acme_p_core.2 pmos lmin=0.2u lmax=20u wmin=2u wmax=100u vth0=-0.60 {P}
"""


@pytest.fixture
def acme(tmp_path):
    """Path of the technology's TOML, with its library beside it."""
    folder = tmp_path / "acme"
    folder.mkdir()
    (folder / "acme.toml").write_text(TOML)
    (folder / "acme.lib").write_text(LIB.replace("{n}", N))
    (folder / "Drift.inc").write_text("* all corners\n.param drift=1\n")
    (folder / "p_models.inc").write_text(P_MODELS)
    (folder / "switches.inc").write_text(".param mismatch=0\n")
    return folder / "acme.toml"


@pytest.fixture
def transfer_decks():
    """`transfer_pair` below."""
    return transfer_pair


def transfer_pair(technology, sizes, library, sweep):
    """Two decks that sweep |V_GS| of transistors of both polarities at |V_DS| = 0.9 V: cosim's, and the library's own.

    sizes: (w, l) in metre; library: the lines that read it; sweep: first, last, step in volt. Currents are i(vd0),
    i(vd1), ...: the n sizes, then the p sizes.
    """
    unit, diffusion = technology.library.length_unit, technology.library.diffusion
    sources, transistors, instances = [Source("x", "v", "x", "0", 0.0), Source("dd", "v", "vdd", "0", 1.8)], [], []
    gates = ["bgn gn 0 v=v(x)", "bgp gp 0 v=1.8-v(x)"]
    for k, (polarity, w, l) in enumerate((polarity, *size) for polarity in "np" for size in sizes):  # noqa: E741
        nets = (f"d{k}", f"g{polarity}", *(("0", "0") if polarity == "n" else ("vdd", "vdd")))
        sources.append(Source(nets[0], "v", nets[0], "0", 0.9))
        transistors.append(Mos(str(k), *nets, polarity, w, l))
        area, rim = w * diffusion / unit**2, 2 * (w + diffusion) / unit
        drawn = f"w={w / unit:.9g} l={l / unit:.9g}"
        drawn += f" ad={area:.9g} as={area:.9g} pd={rim:.9g} ps={rim:.9g}" if diffusion else ""
        instances.append(f"x{k} {' '.join(nets)} {technology.device(polarity).name} {drawn}")
    saved = " ".join(f"i(v{source.name})" for source in sources[2:])
    analysis = ".dc vx " + " ".join(f"{value:e}" for value in sweep)
    decks = []
    for devices, lines in ((transistors, gates), ([], [*gates, *instances, library])):
        deck = format_deck(
            Circuit("transfer", (), (*sources, *devices)),
            technology,
            format_options(PRECISE, technology),
            analysis,
            saved,
        )
        decks.append(deck.replace("\n.options", "\n" + "\n".join(lines) + "\n.options"))
    return decks
