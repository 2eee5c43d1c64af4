"""Names are unique by construction: no block and no top level holds one twice, in any dialect."""

import re
from collections import Counter

import pytest

from cosim.base.errors import MappingError
from cosim.circuit.deck import format_elements
from cosim.circuit.dialects.table import DIALECTS
from cosim.circuit.elements import Capacitor, Circuit, Instance, Mos, Source, Subcircuit
from cosim.verbs.calibrate.fingerprint import calibration_benches

DIODE = Instance("upper", ("upper",), "bias_diode")
TWICE = [
    (Instance("upper", ("hold", "upper"), "comparator"), r"not two of xupper: bias_diode on upper and comparator on"),
    (Instance("UPPER", ("a",), "b", "layer0.h[3]"), r"not two of xupper: bias_diode on upper and layer0.h\[3\]; give"),
]
FREE = [
    Instance("lower", ("lower",), "bias_diode"),
    Source("upper", "i", "vdd", "upper", 1e-9),
    Source("upper", "v", "upper", "0", 1.0),
    Mos("upper", "a", "b", "0", "0", "n", 1e-6, 1e-6),
    Capacitor("upper", "a", "0", 1e-12),
]


@pytest.mark.parametrize(("other", "words"), TWICE)
def test_a_name_twice_is_refused_with_both_origins(other, words):
    with pytest.raises(MappingError, match=f"^bench: names of elements must differ, {words}"):
        Circuit("bench", (), (DIODE, *FREE, other))
    with pytest.raises(MappingError, match=f"^subcircuit half: names of elements must differ, {words}"):
        Subcircuit("half", ("a",), (DIODE, other))


def test_names_that_differ_by_their_letter_are_two():
    assert len(Circuit("bench", (), (DIODE, *FREE)).elements) == 6


@pytest.mark.parametrize("element", FREE[1:])
def test_every_kind_of_element_is_compared_with_its_own(element):
    with pytest.raises(MappingError, match=rf"not two of {element.letter}upper: "):
        Circuit("bench", (), (DIODE, element, element))


def test_two_definitions_of_one_name_are_refused():
    block = Subcircuit("diode", ("a",), ())
    with pytest.raises(MappingError, match="^bench: names of subcircuits must differ, not two of diode; define it"):
        Circuit("bench", (block, Subcircuit("other", ("a",), ()), block))


def scopes_of(text, comment):
    """Names of elements by scope, "" the top level, as a netlist in this dialect writes them."""
    names, scope = {"": []}, ""
    for line in re.sub(r" \\\n|\n\+", "", text).splitlines():
        words = re.sub(r"[()]", " ", line).split()
        if not words or words[0].startswith(comment) or words[0] == "simulator":
            continue
        match words[0].removeprefix("."):
            case "subckt":
                scope = words[1]
                assert scope not in names
                names[scope] = []
            case "ends":
                scope = ""
            case name:
                names[scope].append(name)
    return names


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_every_bench_of_a_calibration_has_unique_names(technology, dialect):
    for bench in calibration_benches(technology, 8):
        text = dialect.network(bench.circuit, technology)
        found = scopes_of(text, dialect.language.comment)
        assert sum(map(len, found.values())) == len(bench.circuit.elements) + sum(
            len(block.elements) for block in bench.circuit.subcircuits
        )
        for scope, names in found.items():
            twice = [name for name, count in Counter(name.lower() for name in names).items() if count > 1]
            assert not twice, (bench.circuit.title, scope, twice)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_the_parser_sees_a_name_twice(technology, dialect):
    lines = format_elements([DIODE, DIODE], technology, dialect.language)
    assert scopes_of("\n".join(lines), dialect.language.comment)[""] == ["xupper", "xupper"]
