"""Noise of benches: which sources a circuit gets for it, and room for a march with them."""

from collections.abc import Sequence

import numpy as np

from cosim.circuit.bench import TransientNoise
from cosim.circuit.elements import GROUND, Source
from cosim.engines.batch.assemble import Assembled
from cosim.engines.batch.flat import Flat
from cosim.engines.batch.lanes import LANES, blank
from cosim.engines.batch.noisy import Noisy
from cosim.engines.batch.structure import TabulatedDevice, devices_of

Pair = tuple[str, str]  # nets that a noise current flows between


def with_noise(flat: Sequence[Flat], noise: TransientNoise) -> list[Flat]:
    """Circuits with a source of 0 A for every pair of nets that noise flows between."""
    fixed = [(net, GROUND) for net, _ in noise.sources]
    carrying = [device for device in devices_of(flat[0].elements) if not device.kind.floating] if noise.slopes else []
    pairs = dict.fromkeys([*fixed, *map(_ends, carrying)])
    added = tuple(Source(_name(pair), "i", *pair, 0.0) for pair in pairs)
    return [Flat(one.shared, (*one.sources, *added)) for one in flat]


def _ends(device: TabulatedDevice) -> Pair:
    return device.drain, device.source


def _name(pair: Pair) -> str:
    return f"noise {pair[0]} {pair[1]}"


def noisy_for(circuit: Assembled, noise: TransientNoise, thermal_voltage: float, lanes: int = LANES) -> Noisy:
    """Room for the noise of benches whose circuit is that of `with_noise`."""
    slopes = dict(zip("np", noise.slopes or (), strict=False))
    own: dict[Pair, list[int]] = {}
    for k, device in enumerate(circuit.tied if slopes else ()):
        own.setdefault(_ends(device), []).append(k)
    fixed = {(net, GROUND): 2 * rms**2 * noise.step for net, rms in noise.sources}
    pairs = sorted({**fixed, **own}, key=lambda pair: circuit.source[_name(pair)])
    lists = [own.get(pair, []) for pair in pairs]
    devices = [k for few in lists for k in few]
    return Noisy(
        step=noise.step,
        source=np.array([circuit.source[_name(pair)] for pair in pairs], dtype=np.int64),
        fixed=np.array([fixed.get(pair, 0.0) for pair in pairs]),
        device_at=np.cumsum([0, *map(len, lists)], dtype=np.int64),
        device=np.array(devices, dtype=np.int64),
        weak=np.array([slopes[circuit.tied[k].kind.polarity] * thermal_voltage for k in devices], dtype=np.float64),
        key=np.zeros(lanes, dtype=np.uint64),
        at=np.zeros(lanes, dtype=np.int64),
        before=blank(len(pairs), lanes),
        after=blank(len(pairs), lanes),
        density=blank(len(pairs), lanes),
    )


def begin_noise(noisy: Noisy, lane: int, noise: TransientNoise) -> None:
    """Put a bench's noise where it begins: none until the first point of the grid."""
    noisy.key[lane] = np.uint64(noise.key)
    noisy.at[lane] = 0
    noisy.before[:, lane] = noisy.after[:, lane] = 0.0
