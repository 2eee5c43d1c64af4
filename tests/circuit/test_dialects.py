"""Dialects: each text says the same circuit (read back by parsers of this file), and ngspice runs what it can read."""

import csv
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cosim.base.errors import MissingToolError
from cosim.circuit.bench import PRECISE, Bench, Current, Tran, Voltage
from cosim.circuit.deck import device_sizes, format_elements, format_number
from cosim.circuit.dialects.ngspice import NGSPICE, format_options
from cosim.circuit.dialects.table import DIALECTS as RECORDS
from cosim.circuit.dialects.table import dialect_named
from cosim.circuit.elements import Capacitor, Circuit, Instance, Mos, Source, Subcircuit
from cosim.circuit.waveforms import Timing
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.engines.simulation.testbench import control_elements, input_elements, saved_probes
from cosim.network.reference import measure_state_ranges
from cosim.technology.calibration import load_calibration
from cosim.technology.catalog import load_technology
from cosim.technology.foundry import card_name, cards_source, device_cards
from cosim.verbs.calibrate.find import shipped_path
from cosim.verbs.compile.outputs import Exercise, format_exercise, format_expected, made_up_stimulus

ROOT = Path(__file__).resolve().parent.parent.parent
TINY = ROOT / "netlists" / "tiny_network"
DIALECTS = tuple(dialect.name for dialect in RECORDS)
OTHERS = DIALECTS[1:]
IN_BRACKETS = {"spectre", "vacask"}
NUMBER = r"-?\d(?:\.\d+)?e[+-]\d+"
# Words that no net, element, block or model may be called in Spectre or VACASK: statements, masters and functions.
RESERVED = re.findall(
    r"\w+",
    """
    alter altergroup analogmodel analysis assert bsim4 capacitor check checkpoint control correlate elaborate else
    embed end endc ends export for function global ground ic if include info inline inductor invisible isource library
    load local march model modelgroup nodeset options parameters paramset plot print process protect real relay
    resistor return save section set shell simulator statistics subckt sweep tran truncate unprotect vary vsource
    abs acos acosh asin asinh atan atan2 atanh ceil cos cosh exp floor fmod hypot int ln log log10 max min pow sin sinh
    sqrt tan tanh
    """,
)

INNER = Subcircuit(
    "inner",
    ("a", "b"),
    (
        Mos("1", "a", "g", "0", "0", "n", 2e-6, 3e-6, 5, "layer0.weight[1,2]"),
        Mos("2", "g", "b", "vdd", "vdd", "p", 7e-6, 11e-6),
        Capacitor("hold", "g", "vdd", 4e-13),
    ),
    "two transistors\nport a, port b",
)
CIRCUIT = Circuit("golden", (INNER,), (Instance("top", ("in", "out"), "inner", "what it is for"),))
SOURCES = (Source("dd", "v", "vdd", "0", 1.8), Source("in", "i", "in", "0", ((0.0, 0.0), (1e-3, 2.5e-9))))
SPECTRE = """\
// golden
simulator lang=spectre

// two transistors
// port a, port b
subckt inner (a b)
// layer0.weight[1,2]
m1 (a g 0 0) generic180_n w=2e-06 l=3e-06 m=5
m2 (g b vdd vdd) generic180_p w=7e-06 l=1.1e-05 m=1
chold (g vdd) capacitor c=4e-13
ends inner

// what it is for
xtop (in out) inner
"""
SPECTRE_BENCH = """\
// a bench
simulator lang=spectre
global 0
include "network.scs"
include "devices.scs"
// what it is for
xtop (in out) inner
v_dd (vdd 0) vsource type=dc dc=1.8e+00
i_in (in 0) isource type=pwl wave=[0e+00 0e+00 1e-03 2.5e-09]
tolerances options reltol=1e-04 vabstol=1e-06 iabstol=1e-15 gmin=1e-16 temp=2.7e+01 save=selected
run tran stop=1e-03 maxstep=1e-05 errpreset=moderate relref=alllocal method=gear2only
save xtop.g v_dd:p
"""
XYCE_TAIL = """\
.options device gmin=1e-16 temp=2.7e+01
.options timeint method=gear reltol=1e-04 abstol=1e-06
.options nonlin abstol=1e-15 reltol=1e-04 rhstol=1e-12
.options nonlin-tran abstol=1e-15 reltol=1e-04 rhstol=1e-12
.print tran V(XTOP:G) I(VDD)
.tran 1e-05 1e-03 0e+00 1e-05
.end
"""
HSPICE_TAIL = """\
.option runlvl=0 gmin=1e-16 gmindc=1e-16 abstol=1e-15 absmos=1e-15 vntol=1e-06 chgtol=1e-17 reltol=1e-04
+ reli=1e-04 relmos=1e-04 trtol=2e+01 method=trap mu=4e-01 bypass=0 delmax=1e-05
.option post probe
.temp 2.7e+01
.probe tran v(xtop.g) i(vdd)
.tran 1e-05 1e-03
.end
"""


# Golden texts ---------------------------------------------------------------------------------------------------------


def test_spectre_text(technology):
    assert dialect_named("spectre").network(CIRCUIT, technology) == SPECTRE


@pytest.mark.parametrize(
    ("dialect", "tail"), [("spectre", SPECTRE_BENCH), ("hspice", HSPICE_TAIL), ("xyce", XYCE_TAIL)]
)
def test_bench_text(dialect, tail, technology):
    circuit = replace(CIRCUIT, title="a bench", elements=(*CIRCUIT.elements, *SOURCES))
    bench = Bench(circuit, technology, Tran(1e-5, 1e-3), (Voltage("xtop.g"), Current("dd")))
    text = dialect_named(dialect).format_testbench(bench)
    assert text.endswith(tail)
    assert text.splitlines()[0].endswith(" a bench")  # SPICE takes the first line as the title, whatever it says


def test_every_spice_dialect_has_the_same_netlist(technology):
    texts = {dialect_named(dialect).network(CIRCUIT, technology) for dialect in ("ngspice", "hspice", "xyce")}
    assert len(texts) == 1


# Round trip: read the text back, flatten it, and hold it against Circuit.flatten --------------------------------------


def joined(text, comment):
    """Statements without comments, continuation lines joined."""
    lines = re.sub(r" \\\n *", " ", text.replace("\n+", "")).splitlines()
    return [line for line in lines if line.strip() and not line.startswith(comment)]


def read_spice(text):
    blocks, current = {}, None
    for line in joined(text, "*"):
        words = [word for word in line.split() if "=" not in word]
        values = dict(word.split("=") for word in line.split() if "=" in word)
        if words[0] == ".subckt":
            current = blocks[words[1]] = (words[2:], [])
        elif words[0] == ".ends":
            current = None
        elif current is not None:
            current[1].append((words[0], words[1:-1], words[-1], values))
    return blocks


def read_brackets(text):
    blocks, current = {}, None
    for line in joined(text, "//"):
        statement = re.fullmatch(r"(\w+) \(([^()]*)\) (\w+)((?: [$\w]+=\S+)*)", line)
        if opening := re.fullmatch(r"subckt (\w+) \(([^()]*)\)", line):
            current = blocks[opening[1]] = (opening[2].split(), [])
        elif line.split()[0] == "ends":
            current = None
        elif statement is not None and current is not None:
            values = dict(word.replace("$mfactor", "m").split("=") for word in statement[4].split())
            current[1].append((statement[1], statement[2].split(), statement[3], values))
        else:
            assert line == "simulator lang=spectre", line
    return blocks


BLOCKS_OF = {dialect: read_brackets if dialect in IN_BRACKETS else read_spice for dialect in DIALECTS}


def flattened(blocks, name, path, inside, nets):
    ports, items = blocks[name]
    known = {"0": "0", **dict(zip(ports, nets, strict=True))}
    for item, ends, master, values in items:
        ends = tuple(known.get(end, inside + end) for end in ends)
        if item[0] == "x":
            yield from flattened(blocks, master, f"{path}{item[1:]}.", f"{inside}{item}.", ends)
        elif item[0] == "m":
            yield (
                path + item[1:].removesuffix("_"),
                ends,
                master,
                float(values["w"]),
                float(values["l"]),
                int(values["m"]),
                values,
            )


def rising(layer):
    """The layer at epsilon -1 with thresholds that candidates pass upwards only."""
    weight, bias = np.abs(layer.weight) + 0.25, np.abs(layer.bias) + 0.125
    between = bias + 0.45 * weight.sum(axis=1)
    return replace(layer, weight=weight, bias=bias, beta_lo=bias / 2, beta_hi=between, epsilon=-1.0)


@pytest.fixture(scope="module", params=["first", "signed_input", "ladders", "toggles"])
def design(request, technology, calibration, make_network):
    if request.param in ("ladders", "toggles"):
        network = make_network(3, "first", widths=(2, 1), alphas=(1.0, 2.0))
        native = rising if request.param == "toggles" else lambda layer: replace(layer, epsilon=1.0)
        network = replace(network, layers=tuple(native(layer) for layer in network.layers))
        x = np.random.default_rng(103).uniform(0, 1, (13, 6, 3))
        network = replace(network, state_ranges=measure_state_ranges(network, x, np.full(13, 6)))
        return compile_network(network, technology, calibration, CompilerSettings(0.25e-9))
    return compile_network(make_network(7, request.param, hidden=2), technology, calibration)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("diffusion", [0.0, 0.29e-6])
def test_round_trip(dialect, diffusion, design, technology):
    technology = replace(technology, library=replace(technology.library, diffusion=diffusion))
    circuit = design.assembly.circuit
    text = dialect_named(dialect).network(Circuit(circuit.title, circuit.subcircuits), technology)
    blocks = BLOCKS_OF[dialect](text)
    found = list(flattened(blocks, "network", "network.", "xnetwork.", design.assembly.ports))
    expected = [
        (
            mos.name, (mos.drain, mos.gate, mos.source, mos.bulk),
            card_name(technology, mos.polarity, mos.w, mos.l), mos.w, mos.l, mos.m,
        )
        for mos in circuit.flatten()
    ]  # fmt: skip
    assert len(found) == len(expected) > 100
    for (name, nets, model, w, l, m, values), wanted in zip(found, expected, strict=True):  # noqa: E741
        assert (name, nets, model, m) == (*wanted[:3], wanted[5])
        assert (w, l) == pytest.approx(wanted[3:5], rel=1e-11, abs=0)  # 12 digits are written
        area = [float(values[key]) for key in ("ad", "as", "pd", "ps") if key in values]
        rim = 2 * (w + diffusion)
        assert area == pytest.approx([w * diffusion, w * diffusion, rim, rim] if diffusion else [], rel=1e-11, abs=0)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_sources_and_saves(dialect, design, technology):
    """Every point of every source, read back; and as many saved vectors as ngspice's testbench has."""
    assembly, timing = design.assembly, Timing()
    elements = control_elements(design, design.nominal, 2, timing)
    elements += input_elements(design, design.nominal, np.array([[0.0, 1.0, 0.5], [1.0, 0.25, 0.5]]), timing)
    if dialect == "ngspice":
        text = "\n".join(format_elements(elements, technology))
    else:
        saved = saved_probes(assembly)
        bench = Bench(Circuit("bench", (), tuple(elements)), technology, Tran(1e-4, 1e-2), saved)
        text = dialect_named(dialect).format_testbench(bench)
        last = next(line for line in joined(text, "no comment") if re.match(r" *save |\.print |\.probe ", line))
        assert len(last.split()) - (1 if dialect in IN_BRACKETS else 2) == len(saved)
    lines = {re.sub(r"[ (].*", "", line): line for line in joined(text, "no comment")}
    for source in elements:
        assert isinstance(source, Source)
        name = f"{source.kind}_{source.name}" if dialect in IN_BRACKETS else f"{source.kind}{source.name}"
        nets = f"({source.a} {source.b})" if dialect in IN_BRACKETS else f"{source.a} {source.b}"
        assert lines[name].startswith(f"{name} {nets} ")
        numbers = [float(text) for text in re.findall(rf"(?<=[ =(\[]){NUMBER}", lines[name])]
        points = source.value if isinstance(source.value, tuple) else ((source.value,),)
        assert numbers == pytest.approx([number for point in points for number in point], rel=1e-11, abs=0)


@pytest.fixture(scope="module", params=["generic180", "self-cascodes", "gf180mcu", "sky130"])
def process(request, technology, calibration):
    """A technology, and a calibration that serves it; kits where they are installed."""
    if request.param == "generic180":
        return technology, calibration
    if request.param == "self-cascodes":
        roles = ("mirror_n", "mirror_p", "cell_n", "cell_p")
        pairs = {role: replace(getattr(technology.sizing, role), cascode=(5e-6, 1e-6)) for role in roles}
        return replace(technology, sizing=replace(technology.sizing, **pairs)), calibration
    try:
        return load_technology(request.param), load_calibration(shipped_path(request.param, 8))
    except MissingToolError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def assembled(design, process):
    """The technology, and the design's network compiled in it."""
    technology, calibration = process
    return technology, compile_network(
        design.network, technology, calibration, CompilerSettings(design.i_unit)
    ).assembly


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_name_is_reserved_or_begins_with_a_digit(dialect, design, assembled):
    """In Spectre, names of nets, elements, blocks and models share one space of words with the language."""
    technology, assembly = assembled
    blocks = BLOCKS_OF[dialect](dialect_named(dialect).network(replace(assembly.circuit, elements=()), technology))
    elements = control_elements(design, design.nominal, 2, Timing())
    elements += input_elements(design, design.nominal, np.zeros((2, len(assembly.input_pins))), Timing())
    names = {*blocks, *(end for source in elements if isinstance(source, Source) for end in (source.a, source.b))}
    for ports, items in blocks.values():
        names.update(ports, *(ends for _, ends, _, _ in items), (item for item, _, _, _ in items))
    reserved = set(RESERVED) if dialect in IN_BRACKETS else set()
    assert not names & (reserved | {"gnd", "ground", "gnd!"})  # the latter: ground in HSPICE
    assert all(re.fullmatch(r"0|[a-z][a-z0-9_]*", name) for name in names)  # nothing to escape in any dialect


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_input_that_never_moves_is_a_dc_source(dialect, design):
    """The first input stays at 0, where the reset left it; the others move."""
    x = made_up_stimulus(design.network.encoding)
    x[:, 0] = design.network.encoding.offset[0]
    text = format_exercise(design, Exercise(stimulus=x), dialect=dialect_named(dialect))
    sources = [line for line in joined(text, "no comment") if re.match(r"[iv]_?(in_|clk|resetb|dd)", line)]
    waves = [line for line in sources if "pwl" in line]
    for line in waves:
        values = re.findall(NUMBER, re.sub(r".*(?=pwl)", "", line))[1::2]
        assert len(set(values)) > 1, line
    still = [line for line in sources if "pwl" not in line]
    assert {re.sub(r"[ (].*", "", line).replace("_", "") for line in still} == {"vdd", "iin0p"}
    assert format_number(design.graph.i_pedestal) in still[1]


def test_expected_names_what_each_simulator_prints(design):
    """ngspice and HSPICE: as asked for. Xyce: all names in capitals. Spectre: nets and a source's first terminal.

    VACASK: nets and a source's branch; `tests/engines/test_vacask.py` reads them from its raw file.
    """
    latch = next(iter(design.assembly.decisions.values()))[0]
    pin, colons = design.assembly.outputs[0], latch.replace(".", ":")
    printed = {
        "ngspice": (f"v({latch})", f"i(v{pin})"),
        "hspice": (f"v({latch})", f"i(v{pin})"),
        "xyce": (f"V({colons})".upper(), f"I(V{pin})".upper()),
        "spectre": (latch, f"v_{pin}:p"),
        "vacask": (colons, f"v_{pin}:flow(br)"),
    }
    for dialect in DIALECTS:
        text = format_expected(design, dialect=dialect_named(dialect))
        vectors = {name for row in csv.DictReader(text.splitlines()) for name in row["vectors"].split()}
        assert vectors >= set(printed[dialect])
        assert len(vectors) == sum(map(len, design.assembly.decisions.values())) + len(design.assembly.outputs)


# Device cards ---------------------------------------------------------------------------------------------------------


def read_cards(text, dialect):
    """{name: (polarity, {parameter: text})}"""
    cards = {}
    for line in joined(text, "//" if dialect in IN_BRACKETS else "*"):
        words = re.sub(r"[()]", "", line).split() if dialect == "vacask" else line.split()
        values = dict(word.split("=") for word in words if "=" in word)
        if words[0] == "model":
            assert words[2] == {"spectre": "bsim4", "vacask": "sp_bsim4v8"}[dialect]
            cards[words[1]] = ({"1": "n", "-1": "p"}.get(kind := values.pop("type"), kind), values)
        elif words[0] == ".model":
            cards[words[1]] = (words[2][0], values)
    return cards


@pytest.fixture
def kit(technology, tmp_path):
    """A library as foundries make them: devices in subcircuits, so each size gets its own card; version 4.5."""
    body = technology.library.file.read_text().partition(".lib devices")[2].replace(".endl devices", "")
    body = body.replace("level=14 version=4.8.1", "level=54 version=4.5 vgs_max=3.6 vbsr_max=3.6")
    for letter in "np":
        name = f"generic180_{letter}"
        body = body.replace(
            f".model {name} ", f".subckt {name} d g s b w=1 l=1\nm1 d g s b {name}_in w=w l=l\n.model {name}_in "
        )
    body = body.replace(".subckt generic180_p", ".ends\n.subckt generic180_p")
    path = tmp_path / "kit.lib"
    path.write_text(f".lib typical\n.param dvth_n=0 dvth_p=0 mu_n=1 mu_p=1\n{body}\n.ends\n.endl typical\n")
    library = replace(technology.library, file=path, also=(), sections={"tt": "typical"}, length_unit=1e-6)
    return replace(technology, name="kit", library=library)


SIZES = {("n", 2e-6, 3e-6), ("p", 7e-6, 11e-6)}


@pytest.mark.parametrize("dialect", OTHERS)
@pytest.mark.parametrize("which", ["technology", "kit"])
def test_cards_keep_every_number(dialect, which, request):
    technology = request.getfixturevalue(which)
    plain = read_cards(NGSPICE.devices(technology, SIZES), "ngspice")
    found = read_cards(dialect_named(dialect).devices(technology, SIZES), dialect)
    assert list(found) == list(plain) == [card_name(technology, *size) for size in sorted(SIZES)]
    versions = {
        "technology": {"xyce": "4.8.2", "vacask": '"4.8.1"'},
        "kit": {"xyce": "4.6.1", "vacask": '"4.8.0"'},
    }
    for name, (polarity, values) in found.items():
        assert polarity == plain[name][0] == name[11]
        assert values.pop("level", "54") == "54"
        assert values.pop("version") == versions[which].get(dialect, "4.8" if which == "technology" else "4.5")
        rest = {key: value for key, value in plain[name][1].items() if key not in ("level", "version")}
        left_out = {key for key in rest if key.endswith("_max")}
        assert len(left_out) == (2 if which == "kit" else 0)
        assert values == {key: value for key, value in rest.items() if key not in left_out}


@pytest.mark.parametrize("dialect", OTHERS)
def test_cards_say_what_was_changed_and_how_to_use_the_library(dialect, kit, technology):
    text = dialect_named(dialect).devices(kit, SIZES)
    assert text.count(f"left out, because {dialect} does not know them: vgs_max, vbsr_max") == 2
    library = {"spectre": 'include "FILE" section=typical', "vacask": ""}.get(dialect, ".lib 'FILE' typical")
    assert library in text and "generic180_n_w2_l3" in text
    assert ("in units of 1e-06 m" in text) == (dialect != "vacask")  # no kit has a library for it
    assert str(kit.library.file.parent) not in text
    assert "FILE" not in dialect_named(dialect).devices(technology, SIZES)


@pytest.mark.parametrize("dialect", OTHERS)
def test_a_card_without_tnom_says_it_where_the_default_is_another(dialect, technology, tmp_path):
    """27 C in ngspice, Xyce and Spectre, 25 C in HSPICE."""
    text = technology.library.file.read_text()
    file = tmp_path / "generic180.lib"
    file.write_text(re.sub(r" tnom=\S+", "", text))
    assert file.read_text() != text
    without = replace(technology, library=replace(technology.library, file=file))
    for _, values in read_cards(dialect_named(dialect).devices(without, SIZES), dialect).values():
        assert values.get("tnom") == ("27" if dialect == "hspice" else None)


def test_ngspice_cards_are_the_technology_s_own(kit):
    """A card is data: numbers by parameter, which its text holds digit for digit, in the same order.

    Only the level is written as ngspice's own.
    """
    text, cards = dialect_named("ngspice").devices(kit, SIZES), device_cards(kit, SIZES)
    assert text.startswith(f"* {cards_source(kit)}\n.model ")
    found = read_cards(text, "ngspice")
    assert list(found) == [card.name for card in cards] and len(found) == 2
    for card in cards:
        polarity, values = found[card.name]
        assert (polarity, values.pop("version"), values.pop("level")) == (card.polarity, card.version, "14")
        numbers = {key: value for key, value in card.parameters.items() if key != "level"}
        assert [(key, float(value)) for key, value in values.items()] == list(numbers.items())


# Simulation -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def mode(in_ngspice):
    """(mode of compatibility, deck) -> its vectors in that mode."""

    def run(name, deck):
        command = f"set ngbehavior={name}" if name else "unset ngbehavior"
        waves, said = in_ngspice(f"session.command({command!r})\n(found,) = session.run({deck!r}, None)")
        assert any(f"Compatibility modes selected: {name}" in line for line in said) == bool(name)
        return waves

    return run


@pytest.fixture(scope="module")
def swept():
    """(mode of compatibility, deck) -> vectors that were simulated already."""
    return {}


@pytest.mark.ngspice
@pytest.mark.parametrize(("dialect", "behaviour"), [("hspice", "hs"), ("xyce", "")])
def test_operating_points_over_an_input(dialect, behaviour, mode, design, technology, swept):
    """3 operating points, the clocks at their last value: the dialect's netlist and cards against ngspice's own."""
    assembly, timing = design.assembly, Timing()
    elements = control_elements(design, design.nominal, 1, timing)
    elements += input_elements(design, design.nominal, np.full((1, 3), 0.5), timing)
    still = [replace(e, value=e.value[-1][1]) if isinstance(e.value, tuple) else e for e in elements]
    probes = *saved_probes(assembly), *map(Voltage, assembly.candidates.values())
    tail = [
        *format_elements((*assembly.circuit.elements, *still), technology),
        format_options(PRECISE, technology).rstrip(),
        f".save {' '.join(map(NGSPICE.printed, probes))}",
        ".dc iin_0_p 5e-11 1.05e-9 5e-10", ".end\n",
    ]  # fmt: skip
    circuit, sizes = Circuit("sweep", assembly.circuit.subcircuits), device_sizes(assembly.circuit)

    def sweep(dialect, behaviour):
        deck = "\n".join(
            (
                dialect_named(dialect).network(circuit, technology),
                dialect_named(dialect).devices(technology, sizes),
                *tail,
            )
        )
        if (behaviour, deck) not in swept:  # ngspice's own is that of every dialect
            swept[behaviour, deck] = mode(behaviour, deck)
        return swept[behaviour, deck]

    ours, theirs = sweep("ngspice", ""), sweep(dialect, behaviour)
    assert set(ours) == set(theirs)
    for name, wave in ours.items():
        assert len(wave) == 3
        # the same equations and tolerances: nothing but the order of operations may differ
        np.testing.assert_allclose(theirs[name], wave, rtol=1e-9, atol=1e-15, err_msg=name)
    moved = max(np.ptp(ours[net]) for net in assembly.candidates.values())
    assert moved > 1e-2  # V: the sweep does reach the candidates


@pytest.mark.ngspice
def test_ngspice_runs_the_hspice_testbench(mode, monkeypatch):
    """Files as they are, in HSPICE mode. `.probe tran` alone goes: without it ngspice keeps every vector."""
    waves = {}
    for folder, behaviour in ((TINY, ""), (TINY / "hspice", "hs")):
        monkeypatch.chdir(folder)
        deck = re.sub(r"\.probe tran .*(\n\+.*)*\n", "", Path("testbench.sp").read_text())
        waves[behaviour] = mode(behaviour, deck)
    timing, names = Timing(), [name for name in waves[""] if name.endswith(("latch", "#branch"))]
    at = timing.sample_times(8)
    for name in names:
        ours, theirs = (np.interp(at, waves[key]["time"], waves[key][name]) for key in ("", "hs"))
        # two runs with other steps: 1 % of i_unit on a current, 1 mV on a decision
        np.testing.assert_allclose(theirs, ours, atol=1e-11 if name.startswith("vreadout") else 1e-3)
    assert sum(name.startswith("vreadout") for name in names) == 3


@pytest.mark.skipif(
    shutil.which("gnucap") is None, reason="gnucap, a free reader of Spectre netlists, is not installed"
)
def test_gnucap_reads_the_spectre_netlist(tmp_path):
    """Every element, listed back by gnucap in SPICE form. It has no BSIM4, so the cards are its level 1 here."""
    text = (TINY / "spectre" / "network.scs").read_text()
    cards = "".join(f"model generic180_{letter} {letter}mos1 level=1\n" for letter in "np")
    head, _, body = text.partition("\nsimulator lang=spectre\n")
    path = tmp_path / "netlist.scs"
    path.write_text(f"{head}\nsimulator lang=spectre\n{cards}{body}simulator lang=spice\n.list\n")
    done = subprocess.run(
        ["gnucap", "-i", str(path)], input="", capture_output=True, text=True, timeout=60, check=False
    )
    assert "?" not in done.stdout + done.stderr  # how gnucap marks what it cannot read
    listed = re.findall(r"^([mx]\w+) \( ([^()]*?) \) +(\w+) *(.*)$", done.stdout, re.MULTILINE)
    written = [item for _, items in read_brackets(text).values() for item in items if item[0][0] in "mx"]
    assert len(listed) == len(written) > 50
    for (name, nets, master, rest), (item, ends, wanted, values) in zip(listed, written, strict=True):
        assert (name, nets.split(), master) == (item, ends, wanted)
        assert {key: float(text) for key, text in re.findall(r"\b([wlm])=(\S+)", rest)} == {
            key: float(values[key]) for key in values
        }
