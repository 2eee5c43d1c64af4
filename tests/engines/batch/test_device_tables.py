"""Device tables against ngspice in circuits of their own: other voltages, real polarities, charges that flow."""

import numpy as np
import pytest

from cosim.base.errors import InputError, MissingToolError
from cosim.base.seal import seal_npz
from cosim.circuit.bench import PRECISE
from cosim.circuit.dialects.ngspice import format_deck, format_options
from cosim.circuit.elements import Circuit, Mos, Source
from cosim.engines.batch import device_fit
from cosim.engines.batch.device_fit import MeasurementSetup, device_tables, fit_table, top_voltage
from cosim.engines.batch.device_tables import (
    DeviceKind,
    FourTerminalTable,
    GridAxis,
    ThreeTerminalTable,
    four_terminal_values,
    load_table,
    table_bytes,
    three_terminal_charges,
    three_terminal_current,
)
from cosim.engines.engine import Failure
from cosim.engines.ngspice.process import run_deck
from cosim.engines.table import simulator_named
from cosim.technology.catalog import load_technology
from cosim.technology.conditions import at

pytestmark = pytest.mark.ngspice

SUPPLY = 1.8
THREE_TERMINAL = {polarity: DeviceKind(polarity, 1e-6, 5e-6) for polarity in "np"}
PAIR = DeviceKind("n", 1e-6, 5e-6, cascode=(4e-6, 0.4e-6))
SWITCH = {polarity: DeviceKind(polarity, 0.4e-6, 0.4e-6, four_terminal=True) for polarity in "np"}
DRAINS = (0.1234, 0.4567, 1.1111, 1.7321)  # V, between the points of all axes
SIGNAL = (1e-13, 2e-8)  # A


@pytest.fixture(scope="module")
def measured(technology):
    """Kind -> its table, measured when it is first asked for."""
    setup, found = MeasurementSetup(technology, simulator_named("ngspice")), {}

    def table(kind: DeviceKind):
        if kind not in found:
            found[kind] = fit_table(setup, kind)
        return found[kind]

    return table


def run(technology, elements, analysis, *saved):
    """Vectors of a circuit at precise options."""
    options = format_options(PRECISE, technology)
    waves = run_deck(format_deck(Circuit("bench", (), tuple(elements)), technology, options, analysis, " ".join(saved)))
    assert not isinstance(waves, Failure), waves.detail
    return waves


def parts(kind: DeviceKind, drain: str, gate: str, source: str, bulk: str, vt_shift=(0.0, 0.0)):
    """The transistors of a kind between nets."""
    name = drain
    lower = Mos(name, drain, gate, source, bulk, kind.polarity, kind.w, kind.l, vt_shift=vt_shift[0])
    if kind.cascode is None:
        return [lower]
    middle, (w, l) = f"mid{name}", kind.cascode  # noqa: E741
    lower = Mos(name, middle, gate, source, bulk, kind.polarity, kind.w, kind.l, vt_shift=vt_shift[0])
    return [lower, Mos(f"{name}u", drain, gate, middle, bulk, kind.polarity, w, l, vt_shift=vt_shift[1])]


def swept(technology, kind: DeviceKind, vt_shift=(0.0, 0.0)):
    """V_GS and drain currents (drains, V_GS) of a device between the rails, as a network has it."""
    rail, sign = ("0", 1) if kind.polarity == "n" else ("vdd", -1)
    from_rail = 0.0 if kind.polarity == "n" else SUPPLY
    elements = [Source("dd", "v", "vdd", "0", SUPPLY), Source("g", "v", "g", "0", from_rail)]
    for number, drain in enumerate(DRAINS):
        elements += [*parts(kind, f"d{number}", "g", rail, rail, vt_shift)]
        elements.append(Source(f"d{number}", "v", f"d{number}", "0", from_rail + sign * drain))
    start, stop, step = (from_rail + sign * 0.2031, from_rail + sign * 1.0, sign * 0.0137)
    saved = [f"i(vd{number})" for number in range(len(DRAINS))]
    waves = run(technology, elements, f".dc vg {start} {stop} {step}", "v(g)", *saved)
    currents = np.array([-sign * waves[f"vd{number}#branch"] for number in range(len(DRAINS))])
    return sign * (waves["g"] - from_rail), currents


@pytest.mark.parametrize("kind", [THREE_TERMINAL["n"], THREE_TERMINAL["p"], PAIR], ids=["n", "p", "cascode"])
def test_a_three_terminal_current_is_the_simulators(technology, measured, kind):
    table = measured(kind)
    x, truth = swept(technology, kind)
    found = three_terminal_current(table, x, np.array(DRAINS)[:, None])
    inside = (truth > SIGNAL[0]) & (truth < SIGNAL[1])
    assert inside.sum() > 100
    # what the low-rank fit leaves, see ThreeTerminalTable.error, and 1e-4 of ngspice's own gmin in the lowest decade
    assert found[inside] == pytest.approx(truth[inside], rel=1e-3, abs=0)
    assert table.error < 1e-3  # up to 100 nA; six products left up to 4e-3


def test_a_current_at_a_low_voltage_is_right_within_its_saturated_one(technology, measured):
    kind = THREE_TERMINAL["n"]
    x, truth = swept(technology, kind)
    working = (truth[2] > SIGNAL[0]) & (truth[2] < SIGNAL[1])
    table, y = measured(kind), np.linspace(0.0, 0.1, 57)[:, None]
    elements = [Source("g", "v", "g", "0", 0.0)]
    for number, drain in enumerate(y[:, 0]):
        elements += [*parts(kind, f"d{number}", "g", "0", "0"), Source(f"d{number}", "v", f"d{number}", "0", drain)]
    saved = [f"i(vd{number})" for number in range(len(y))]
    waves = run(technology, elements, ".dc vg 0.2031 1.0 0.0137", "v(g)", *saved)
    low = -np.array([waves[f"vd{number}#branch"] for number in range(len(y))])
    error = (three_terminal_current(table, x, y) - low) / truth[2]
    # what the fit weighs its errors by; a spline across V_DS = 0, where BSIM4 bends, is off by 2.6e-3 at 5 mV
    assert np.abs(error[:, working]).max() < 1e-3
    assert np.abs(three_terminal_current(table, x, np.array(0.0))).max() == 0.0


@pytest.mark.parametrize("kind", [THREE_TERMINAL["n"], THREE_TERMINAL["p"], PAIR], ids=["n", "p", "cascode"])
@pytest.mark.parametrize("vt_shift", [(0.015, 0.0), (-0.015, 0.0), (0.01, 0.01)])
def test_a_deviating_device(technology, measured, kind, vt_shift):
    table, y = measured(kind), np.array(DRAINS)[1:, None]
    if kind.cascode is None:
        vt_shift = (vt_shift[0], 0.0)
    x, nominal = swept(technology, kind)
    _, truth = swept(technology, kind, vt_shift)
    ratio = three_terminal_current(table, x, y, vt_shift) / three_terminal_current(table, x, y)
    inside = ((nominal > SIGNAL[0]) & (nominal < SIGNAL[1]))[1:]
    # 15 mV is 3 sigma of the smallest device; the third derivative of ln I is left out, and that r follows V_DS
    assert ratio[inside] == pytest.approx((truth / nominal)[1:][inside], rel=2e-3, abs=0)


@pytest.mark.parametrize("polarity", ["n", pytest.param("p", marks=pytest.mark.slow)])
def test_a_four_terminal_current_is_the_simulators(technology, measured, polarity):
    kind = SWITCH[polarity]
    table, sign, bulk = measured(kind), 1 if polarity == "n" else -1, 0.0 if polarity == "n" else SUPPLY
    rng = np.random.default_rng(3)
    drop = rng.uniform(0.003, 1.5, 40)
    source = rng.uniform(0.0, 1.0, 40) * (SUPPLY - drop)
    elements = [Source("g", "v", "g", "0", bulk), Source("b", "v", "b", "0", bulk)]
    for number in range(40):
        low, high = (bulk + sign * v for v in (source[number], source[number] + drop[number]))
        elements += [*parts(kind, f"d{number}", "g", f"s{number}", "b")]
        elements += [
            Source(f"d{number}", "v", f"d{number}", "0", high),
            Source(f"s{number}", "v", f"s{number}", "0", low),
        ]
    saved = [f"i(vs{number})" for number in range(40)]
    start, stop, step = bulk + sign * 0.0317, bulk + sign * 1.79, sign * 0.0713
    waves = run(technology, elements, f".dc vg {start} {stop} {step}", "v(g)", *saved)
    truth = sign * np.array([waves[f"vs{number}#branch"] for number in range(40)])
    gate = sign * (waves["g"] - bulk)
    found, *_ = four_terminal_values(table, gate, source[:, None], drop[:, None])
    inside = truth > 1e-12
    # a quadratic spline with points 30 to 40 mV apart errs most at V_DS below 0.1 V; the source loses 4e-4 to the bulk
    assert found[inside] == pytest.approx(truth[inside], rel=5e-3, abs=0)
    assert table.error < 1e-3


def flowed(technology, elements, source: str, end: float):
    """Times, and the charge that a source has delivered through 1 Mohm into the net `in`."""
    resistor = f"r1 v{source} in 1e6"
    waves = run(technology, elements, f"{resistor}\n.tran 1e-11 {end} 0 1e-11", "v(in)", f"i(v{source})")
    time, current = waves["time"], -waves[f"v{source}#branch"]
    charge = np.concatenate([[0.0], np.cumsum(np.diff(time) * (current[1:] + current[:-1]) / 2)])
    return waves["in"], charge


STEP = ((0.0, 0.0), (1e-9, 1.2))  # V over s


def test_the_gate_charge_follows_the_threshold(technology, measured):
    """q(x - dV) to 2 % of how far 30 mV move it: delvto moves the threshold by 1 % more than the gate would."""
    kind, charges = THREE_TERMINAL["n"], list[np.ndarray]()
    for shift in (-0.03, 0.03):
        elements = [
            *parts(kind, "d", "in", "0", "0", (shift, 0.0)),
            Source("d", "v", "d", "0", 1.2),
            Source("x", "v", "vx", "0", STEP),
        ]
        x, charge = flowed(technology, elements, "x", 4e-8)
        there = np.linspace(0.1, 1.1, 21)
        own, _ = three_terminal_charges(measured(kind), there - shift, np.array(1.2))
        charges += [np.interp(there, x, charge), own]
    moved, expected = charges[0] - charges[2], charges[1] - charges[3]
    moved, expected = moved - moved[0], expected - expected[0]  # constants of the charge do not matter
    assert np.abs(moved - expected).max() < 0.02 * np.abs(moved).max()
    assert np.abs(moved).max() > 0.02 * np.ptp(charges[1])


def test_gate_charge_flows_through_a_resistor(technology, measured):
    elements = [
        *parts(THREE_TERMINAL["n"], "d", "in", "0", "0"),
        Source("d", "v", "d", "0", 1.2),
        Source("x", "v", "vx", "0", STEP),
    ]
    x, charge = flowed(technology, elements, "x", 4e-8)
    gate, _ = three_terminal_charges(measured(THREE_TERMINAL["n"]), x, np.array(1.2))
    # a channel in strong inversion has a charge that depends on V_DS; it is measured at half the highest
    assert gate[-1] - gate[0] == pytest.approx(charge[-1], rel=1e-2)
    assert gate - gate[0] == pytest.approx(charge, rel=0, abs=1e-2 * charge[-1])


def test_drain_charge_flows_through_a_resistor(technology, measured):
    elements = [
        *parts(THREE_TERMINAL["n"], "in", "g", "0", "0"),
        Source("g", "v", "g", "0", 0.1),
        Source("x", "v", "vx", "0", STEP),
    ]
    y, charge = flowed(technology, elements, "x", 1e-8)
    _, drain = three_terminal_charges(measured(THREE_TERMINAL["n"]), np.array(0.1), y)
    assert drain - drain[0] == pytest.approx(charge, rel=0, abs=1e-2 * charge[-1])


@pytest.mark.parametrize(("moved", "others"), [("g", "sd"), ("s", "gd"), ("d", "gs")])
def test_charges_of_a_four_terminal_device_flow_through_a_resistor(technology, measured, moved, others):
    """A switch of n with its gate off: no current but that of charges."""
    kind, still = SWITCH["n"], {"g": 0.0, "s": 0.7, "d": 1.3}
    names = {one: "in" if one == moved else one for one in "gsd"}
    elements = [*parts(kind, names["d"], names["g"], names["s"], "0")]
    elements += [Source(one, "v", one, "0", still[one]) for one in others]
    begin = still[moved]
    ramp = ((0.0, begin), (1e-9, begin + 0.3))
    voltage, charge = flowed(technology, [*elements, Source("x", "v", "vx", "0", ramp)], "x", 1e-8)
    at_ends = {one: voltage if one == moved else np.full_like(voltage, still[one]) for one in "gsd"}
    _, *charges = four_terminal_values(measured(kind), at_ends["g"], at_ends["s"], at_ends["d"] - at_ends["s"])
    found = charges["gsd".index(moved)]
    assert found - found[0] == pytest.approx(charge, rel=0, abs=2e-2 * charge[-1])


@pytest.mark.parametrize("name", ["gf180mcu", "sky130"])
def test_a_kits_cascode(name):
    try:
        technology = load_technology(name)
    except MissingToolError as error:
        pytest.skip(str(error))
    drawn = technology.sizing.mirror_n
    kind = DeviceKind("n", drawn.w, drawn.l, cascode=drawn.cascode)
    table = fit_table(MeasurementSetup(technology, simulator_named("ngspice")), kind)
    x, truth = swept(technology, kind)
    inside = (truth > SIGNAL[0]) & (truth < SIGNAL[1])
    found = three_terminal_current(table, x, np.array(DRAINS)[:, None])
    assert found[inside] == pytest.approx(truth[inside], rel=1e-3, abs=0)


def test_supplies_of_five_percent_share_a_table(technology):
    tops = {top_voltage(at(technology, supply=SUPPLY * factor)) for factor in (0.95, 1.0, 1.05)}
    assert tops == {2.0}


@pytest.fixture
def kept(technology, measured, monkeypatch, tmp_path):
    """The tables of a three-terminal and of a four-terminal device, and the files where they are kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(device_fit, "fit_table", lambda _, kind: measured(kind))
    kinds = (THREE_TERMINAL["n"], SWITCH["n"])
    found = device_tables(technology, kinds)
    return found, sorted((tmp_path / "cosim" / "tables").iterdir())


def same(one, other) -> bool:
    def plain(table):
        return {
            name: value.tobytes() if isinstance(value, np.ndarray) else value
            for name, value in vars(table).items()
            if not isinstance(value, GridAxis)
        }

    axes = [[vars(value) for value in vars(table).values() if isinstance(value, GridAxis)] for table in (one, other)]
    return type(one) is type(other) and plain(one) == plain(other) and axes[0] == axes[1]


def test_a_kept_table_is_the_measured_one(technology, kept, monkeypatch):
    found, files = kept
    assert [type(table) for table in found.values()] == [ThreeTerminalTable, FourTerminalTable]
    assert len(files) == 2
    before = [file.read_bytes() for file in files]
    monkeypatch.setattr(device_fit, "fit_table", lambda *_: pytest.fail("measured again"))
    again = device_tables(technology, found)
    assert all(same(found[kind], again[kind]) for kind in found)
    assert [file.read_bytes() for file in files] == before


def test_a_file_is_the_same_bytes_for_the_same_table(kept):
    found, files = kept
    texts = {str(np.load(file)["provenance"]): file.read_bytes() for file in files}
    for table in found.values():
        assert any(table_bytes(table, text) == content for text, content in texts.items())


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def turn(content: bytes) -> bytes:
    half = len(content) // 2
    return content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :]


@pytest.mark.parametrize(
    "damage", [cut, turn, lambda _: b"", lambda _: b"no table"], ids=["cut", "turned", "empty", "text"]
)
def test_a_damaged_table_is_measured_anew(technology, kept, monkeypatch, damage):
    found, files = kept
    before = [file.read_bytes() for file in files]
    for file, content in zip(files, before, strict=True):
        file.write_bytes(damage(content))
    asked = []
    monkeypatch.setattr(device_fit, "fit_table", lambda _, kind: asked.append(kind) or found[kind])
    again = device_tables(technology, found)
    assert asked == list(found)
    assert all(same(found[kind], again[kind]) for kind in found)
    assert [file.read_bytes() for file in files] == before


def test_another_corner_and_temperature_are_other_tables(technology, kept, monkeypatch):
    found, _ = kept
    asked = []
    monkeypatch.setattr(device_fit, "fit_table", lambda _, kind: asked.append(kind) or found[kind])
    for other in (at(technology, "ff"), at(technology, celsius=85.0), at(technology, supply=3.3)):
        device_tables(other, found)
    assert asked == 3 * list(found)
    device_tables(at(technology, supply=1.71), found)
    assert len(asked) == 3 * len(found)


def test_a_cache_that_cannot_be_written_is_told(technology, monkeypatch, tmp_path, measured):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    table = measured(THREE_TERMINAL["n"])
    monkeypatch.setattr(device_fit, "fit_table", lambda *_: table)
    said = []
    assert device_tables(technology, [THREE_TERMINAL["n"]], said.append) == {THREE_TERMINAL["n"]: table}
    assert said[0] == "device table: generic180, n 1u/5u"
    assert said[1].startswith("device table not kept: cannot write")
    assert said[1].endswith("by setting XDG_CACHE_HOME")


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.update(x=np.array([b"a", b"b", b"c"])),
        lambda arrays: arrays.update(x=np.array([0.0, 0.0, 3.0])),
        lambda arrays: arrays.update(x=np.array([0.0, np.inf, 3.0])),
        lambda arrays: arrays.update(gate=arrays["gate"][:-1]),
        lambda arrays: arrays.update(c_gd=np.array([1e-15])),
        lambda arrays: arrays.pop("drain"),
        lambda arrays: arrays.update(provenance=np.array(1)),
    ],
)
def test_a_table_of_another_form_is_measured_anew(technology, kept, monkeypatch, change):
    """Its checksum fits: it is of another cosim, or of someone's own script."""
    found, files = kept
    (file,) = (file for file in files if "values" not in np.load(file))
    arrays = dict(np.load(file))
    text = str(arrays["provenance"])
    change(arrays)
    file.write_bytes(seal_npz(arrays, text))
    asked = []
    monkeypatch.setattr(device_fit, "fit_table", lambda _, kind: asked.append(kind) or found[kind])
    device_tables(technology, found)
    assert asked == [THREE_TERMINAL["n"]]


def test_every_bit_of_a_table_counts(kept):
    _, files = kept
    file = min(files, key=lambda path: path.stat().st_size)
    content, text = file.read_bytes(), str(np.load(file)["provenance"])
    assert load_table(file, text) is not None
    for bit in np.random.default_rng(1).integers(8 * len(content), size=200).tolist():
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        file.write_bytes(changed)
        with pytest.raises(InputError, match="holds no device table of this provenance; it is measured anew"):
            load_table(file, text)
