"""Small benches of single cells."""

import pytest

from cosim.cells.bias import BIAS_DIODE, bias_diode
from cosim.cells.mirror import INPUT_DIODE, SIGNAL_RAILS, input_diode, signal_rails, weight
from cosim.cells.rectifier import CANDIDATE, candidate_diode
from cosim.circuit.elements import GROUND, Instance, Source

UNITS = 8


@pytest.fixture
def supply(technology):
    return Source("dd", "v", "vdd", GROUND, technology.supply)


@pytest.fixture
def signal_blocks(technology, calibration):
    """Definitions behind `signals`, `held` and the candidate diode."""
    rails = signal_rails(technology, UNITS, calibration.mirror.trim)
    return (input_diode(technology, UNITS), rails, candidate_diode(technology), bias_diode(technology))


@pytest.fixture
def signals():
    """name -> current or waveform: one input diode with both gate lines per signal, nets NAME_p and NAME_n."""

    def build(**currents):
        elements = []
        for name, current in currents.items():
            elements += [
                Source(name, "i", f"{name}_p", GROUND, current),
                Instance(f"diode_{name}", (f"{name}_p", "vdd"), f"{INPUT_DIODE}_{UNITS}"),
                Instance(f"rails_{name}", (f"{name}_p", f"{name}_n", "vdd"), f"{SIGNAL_RAILS}_{UNITS}"),
            ]
        return tuple(elements)

    return build


@pytest.fixture
def held(technology, calibration):
    """(signal, count) -> one weight whose node a source `vhold` keeps where a candidate diode would, v_node low."""

    def build(signal, count):
        return (
            *weight("w", f"{signal}_{'n' if count > 0 else 'p'}", "node", count, technology),
            Source("hold", "v", "vdd", "node", calibration.v_node),
        )

    return build


@pytest.fixture
def cell_bias():
    """(I_thresh, I_width, I_gain) -> pins and diodes of the three bias lines, and the candidate's diode."""

    def build(currents):
        lines = ("thresh", "width", "gain")
        return (
            *(Source(line, "i", "vdd", line, current) for line, current in zip(lines, currents, strict=True)),
            *(Instance(line, (line,), BIAS_DIODE) for line in lines),
            Instance("cand", ("cand", "vdd"), CANDIDATE),
        )

    return build
