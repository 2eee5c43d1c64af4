"""Draws: how every transistor of a chip deviates, and the supply and temperature at which the chip runs.

    local        each transistor on its own: sigma_vt = a_vt / sqrt(m W' L'), sigma_beta^2 = a_beta^2 / (m W' L') +
                 [(sigma_w / W)^2 + (sigma_l / L)^2] / m, where W' = W + dW, L' = L + dL with the technology's
                 mismatch_dw, mismatch_dl
    process      all n and all p transistors of a chip together: sigma = spread_vt of the technology
    environment  supply uniform within +-5 %, temperature uniform between 0 and 60 C, unless a plan has other ranges

A number is drawn from a hash of the seed, the chip's number and a name, such as a transistor's. So it does not depend
on the order of devices, the number of chips, the engine or the number of workers. Latin hypercube and Sobol sequences
fill each replicate's unit cube more evenly; their numbers do depend on the number of chips. Values are rounded to
single precision, in which the folder of a run keeps them. Source: M. J. M. Pelgrom, A. C. J. Duinmaijer and A. P. G.
Welbers, IEEE J. Solid-State Circuits 24 (1989) 1433.

Linear gradients across the die (same source) add to the draws of a transistor, by its place, anew on each chip:

    dP(x, y) = g_x (x - x_0) + g_y (y - y_0)         g_x, g_y normal, sigma S_P; x_0, y_0 the middle of all places

P is the threshold V_T or the logarithm of the current factor, for n and for p transistors. Two transistors at the
distance D then differ, together with their own draws, by

    sigma^2(dP) = A_P^2 / (W L) + S_P^2 D^2

because g_x dx + g_y dy has the variance S_P^2 (dx^2 + dy^2). The eight slopes of a chip are drawn as all other numbers
are, under names of their own, so gradients do not change the transistors' own draws.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import InputError
from cosim.base.seal import checksum
from cosim.circuit.elements import Attribution, Circuit, Role
from cosim.technology.types import Polarity, Technology

Kind = Literal["none", "local", "global", "all"]
Sampling = Literal["random", "lhs", "sobol"]
Array = NDArray[np.float64]

SUPPLY_RANGE = (0.95, 1.05)  # over the nominal one
CELSIUS_RANGE = (0.0, 60.0)
GLOBALS = ("process n", "process p", "supply", "temperature")
_EDGE = (
    2.0**-33
)  # how near a point may come to 0 and 1, where the normal distribution ends; Sobol's resolution is 2^-30


@dataclass(frozen=True)
class VaryingDevice:
    """A transistor that varies from chip to chip.

    sigma_vt: standard deviation of its threshold voltage, V; sigma_beta: of its current factor, relative; role, part:
    as in `Mos`.
    """

    name: str
    polarity: Polarity
    sigma_vt: float
    sigma_beta: float
    role: Role | None = None
    part: Attribution | None = None


@dataclass(frozen=True, eq=False)
class Chip:
    """One chip, which is one random draw of the deviations of all transistors, with its supply and temperature.

    vt_shift: (devices,) shift of the magnitude of each threshold voltage, V, which includes that of the process;
    beta_factor: (devices,) factor of each current; both are in the order of `devices`; supply: V; celsius: temperature.
    """

    number: int
    devices: tuple[VaryingDevice, ...]
    vt_shift: Array
    beta_factor: Array
    supply: float
    celsius: float


@dataclass(frozen=True)
class VariationPlan:
    """A plan of how chips are drawn: `chips` of them, in `replicates` independent sets.

    kind: what varies (`local`, `common`); sampling: random, or evenly spread by lhs or sobol; area: gate area of the
    devices over the drawn area, for mismatch alone; celsius: lowest and highest temperature of a chip; supplies: least
    and greatest supply of a chip, over the nominal one.
    """

    kind: Kind
    seed: int
    chips: int
    sampling: Sampling = "random"
    replicates: int = 1
    area: float = 1.0
    celsius: tuple[float, float] = CELSIUS_RANGE
    supplies: tuple[float, float] = SUPPLY_RANGE

    @property
    def local(self) -> bool:
        """Tell whether each transistor deviates on its own (mismatch)."""
        return self.kind in ("local", "all")

    @property
    def common(self) -> bool:
        """Tell whether process, supply and temperature vary from chip to chip."""
        return self.kind in ("global", "all")


def varying_devices(circuit: Circuit, technology: Technology, plan: VariationPlan) -> tuple[VaryingDevice, ...]:
    """Return all transistors of a circuit with the standard deviations of their mismatch, in order of name.

    Raises InputError where the technology lacks a mismatch coefficient that the plan needs.
    """
    check_coefficients(technology, plan)
    devices = []
    for mos in circuit.flatten():
        model = technology.device(mos.polarity)
        sigmas = model.deviations(mos.w, mos.l, mos.m, plan.area)
        devices.append(VaryingDevice(mos.name, mos.polarity, *sigmas, mos.role, mos.part))
    return tuple(sorted(devices, key=lambda device: device.name))


def check_coefficients(technology: Technology, plan: VariationPlan) -> None:
    """Raise InputError that names a mismatch coefficient which the plan needs and the technology lacks."""
    for table in ("nfet", "pfet"):
        model = getattr(technology, table)
        for needed, field in ((plan.local, "a_vt"), (plan.common, "spread_vt")):
            if needed and not getattr(model, field) > 0:
                raise InputError(
                    f"{technology.name}: {table}.{field} must be positive for --variation {plan.kind}, not "
                    f"{getattr(model, field):g}; write it into the technology's file, or choose another variation"
                )


def check_environment(technology: Technology, plan: VariationPlan) -> None:
    """Raise InputError where the plan may draw a supply above the technology's largest one."""
    most = round(technology.supply * plan.supplies[1], 6)
    if plan.common and most > technology.supply_max:
        raise InputError(
            f"chips of variation {plan.kind!r} have supplies up to {most:.4g} V; {technology.name} takes at most "
            f"{technology.supply_max:g} V. Choose a range that ends lower, or a lower supply than "
            f"{technology.supply:g} V"
        )


def draw_chip(devices: Sequence[VaryingDevice], technology: Technology, plan: VariationPlan, number: int) -> Chip:
    """Draw the chip with the given number, from 0 to plan.chips - 1.
    technology: has the supply and temperature from which chips deviate, and the spread of the process."""
    return draw_chips(devices, technology, plan, [number])[0]


def draw_chips(
    devices: Sequence[VaryingDevice], technology: Technology, plan: VariationPlan, numbers: Sequence[int]
) -> list[Chip]:
    """Draw the chips with the given numbers, at least one; each is the same whichever others are drawn beside it."""
    from scipy.special import ndtri  # half of a worker's time to load, and a nominal circuit has no use for it

    names, chips, own = tuple(device.name for device in devices), len(numbers), tuple(devices)
    vt, beta = np.zeros((chips, len(names))), np.zeros((chips, len(names)))
    supply, celsius = np.full(chips, technology.supply), np.full(chips, technology.celsius)
    if plan.local:
        drawn = (*(f"{name} vt" for name in names), *(f"{name} beta" for name in names))
        normal = ndtri(np.stack([uniforms(plan, number, drawn) for number in numbers]))
        vt = normal[:, : len(names)] * [device.sigma_vt for device in devices]
        beta = normal[:, len(names) :] * [device.sigma_beta for device in devices]
    if plan.common:
        process_n, process_p, at_supply, at_celsius = np.stack([uniforms(plan, one, GLOBALS) for one in numbers]).T
        shifts = {
            "n": technology.nfet.spread_vt * ndtri(process_n),
            "p": technology.pfet.spread_vt * ndtri(process_p),
        }
        vt = vt + np.array([shifts[one.polarity] for one in devices]).reshape(len(names), chips).T
        (least, greatest), (coldest, hottest) = plan.supplies, plan.celsius
        share = (least + greatest) / 2 + (greatest - least) / 2 * (2 * at_supply - 1)
        supply, celsius = single(supply * share), single(coldest + at_celsius * (hottest - coldest))
    values = zip(numbers, single(vt), single(np.exp(beta)), supply.tolist(), celsius.tolist(), strict=True)
    return [Chip(number, own, *one) for number, *one in values]


def uniforms(plan: VariationPlan, number: int, names: tuple[str, ...]) -> Array:
    """Draw one uniform number in (0, 1) for each name, (names,), on the chip with the given number."""
    if plan.sampling == "random":
        return _hashed(f"{plan.seed} {number} ", names)
    size = -(-plan.chips // plan.replicates)
    replicate, row = divmod(number, size)
    return _cube(plan.sampling, plan.seed, replicate, size, names)[row]


def _hashed(prefix: str, names: Sequence[str]) -> Array:
    """Return a uniform number in (0, 1) for each name, (names,), from the hash of the prefix and the name."""
    digests = [blake2b(f"{prefix}{name}".encode(), digest_size=8).digest() for name in names]
    return ((np.frombuffer(b"".join(digests), ">u8") >> 11) + 0.5) / 2**53


@lru_cache(maxsize=4)
def _cube(sampling: Sampling, seed: int, replicate: int, size: int, names: tuple[str, ...]) -> Array:
    """Draw the points of one replicate by lhs or sobol, in (0, 1): a row for each chip, a column for each name."""
    if sampling == "sobol":
        from scipy.stats import qmc  # a second to load, which most workers can do without

        if len(names) > qmc.Sobol.MAXDIM:
            raise InputError(
                f"--sampling sobol draws at most {qmc.Sobol.MAXDIM} numbers a chip, not {len(names)}; use lhs"
            )
        rng = _generator(f"{seed} {replicate} sobol {len(names)}")
        points = qmc.Sobol(len(names), scramble=True, rng=rng).random_base2((size - 1).bit_length())[:size]
    else:
        generators = [_generator(f"{seed} {replicate} {name}") for name in names]
        points = np.stack([(rng.permutation(size) + rng.random(size)) / size for rng in generators], axis=1)
    return np.clip(points, _EDGE, 1 - _EDGE)


def _generator(text: str) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(int.from_bytes(blake2b(text.encode(), digest_size=16).digest(), "big")))


def single(values: Array | float) -> Array:
    """Round drawn deviations to single precision, in which a chip is kept in a file; return double precision."""
    return np.asarray(values, dtype=np.float32).astype(np.float64)


_SIDES = ("n", "p")
SLOPES = tuple(f"gradient {side} {what} {axis}" for side in _SIDES for what in ("vt", "beta") for axis in "xy")


@dataclass(frozen=True)
class Gradient:
    """Linear gradients of mismatch across a die.

    s_vt: standard deviation of the slope of threshold voltages, V/m; s_beta: of the logarithm of current factors, 1/m;
    places: transistor -> (x, y) in metre.
    """

    s_vt: float
    s_beta: float
    places: Mapping[str, tuple[float, float]]

    @property
    def fingerprint(self) -> str:
        """Return a hash of the transistors' places on the die."""
        text = "".join(f"{name} {x!r} {y!r}\n" for name, (x, y) in sorted(self.places.items()))
        return checksum(text.encode())


def graded(chip: Chip, gradient: Gradient, plan: VariationPlan) -> Chip:
    """Add gradients across the die to the draws of a chip. Every transistor of the chip must have a place."""
    from scipy.special import ndtri

    places = np.array([gradient.places[device.name] for device in chip.devices])
    away = places - (places.min(axis=0) + places.max(axis=0)) / 2
    normal = ndtri(uniforms(plan, chip.number, SLOPES)).reshape(2, 2, 2)  # side, what, axis
    side = np.array([_SIDES.index(device.polarity) for device in chip.devices])
    vt, beta = ((away * normal[:, k][side]).sum(axis=1) for k in (0, 1))
    return replace(
        chip,
        vt_shift=single(chip.vt_shift + gradient.s_vt * vt),
        beta_factor=single(chip.beta_factor * np.exp(gradient.s_beta * beta)),
    )
