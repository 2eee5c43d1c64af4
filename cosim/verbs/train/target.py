"""The technology that a network is trained for: its mismatch, its noise, and the limits of its compiler."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cosim.base.errors import InputError, MappingError
from cosim.cli.option_names import spell_options
from cosim.training.config import TrainingConfig

if TYPE_CHECKING:
    from cosim.network.types import Network
    from cosim.technology.types import Technology
    from cosim.variation.sigma import SigmaParts


@dataclass(frozen=True)
class DeviceOptions:
    """Mismatch of the chips in a training, and noise of its decisions."""

    variation: str
    sigma_of: str
    technology: str
    pdk_root: Path | None
    area: float


def complete_config(config: TrainingConfig, devices: DeviceOptions) -> TrainingConfig:
    """Return the configuration with what its options leave open: the BMRU's epsilon, the mismatch of a technology."""
    from cosim.technology.catalog import load_technology
    from cosim.variation.mismatch import derive_mismatch

    mismatch, spread, counted = None, None, config.margin_sigma > 0 or config.device_noise
    grid = config.architecture.grid
    if devices.variation == "local" or counted:
        process = load_technology(devices.technology, devices.pdk_root)
        mismatch = derive_mismatch(process, grid, devices.area) if devices.variation == "local" else None
        spread = _spread(process, grid, chips=devices.sigma_of == "chips") if counted else None
    elif devices.area != 1:
        raise InputError(
            "--area needs --variation local, --margin-sigma or --device-noise: nominal training knows no devices"
        )
    annealed = config.epsilon is None and config.architecture.cell != "bmru"
    epsilon = None if annealed else config.epsilon or 0.0
    return replace(config, mismatch=mismatch, spread=spread, epsilon=epsilon)


def _spread(technology: "Technology", grid: float | None, *, chips: bool) -> "SigmaParts":
    from cosim.engines.behavioral.sigma import devices_of
    from cosim.technology.scale import units_for
    from cosim.verbs.calibrate.noise import find_noise

    return devices_of(technology, find_noise(technology), units_for(grid), chips=chips)


def circuit_check(devices: DeviceOptions, grid: float | None, output: Path) -> "Callable[[Network], None]":
    """Return a check that raises MappingError for a network that plain `cosim compile` refuses for this technology.

    Without a calibration at hand, which would have to be measured, only what needs none is checked.
    """
    from cosim.compiler.passes import check_mapping, check_sizes
    from cosim.technology.catalog import load_technology
    from cosim.technology.scale import units_for
    from cosim.verbs.calibrate.find import known_calibration

    technology = load_technology(devices.technology, devices.pdk_root)
    calibration = known_calibration(technology, units_for(grid))

    def check(network: "Network") -> None:
        try:
            if calibration is None:
                check_mapping(network, origin=str(output))
            else:
                check_sizes(network, technology, calibration, str(output))
        except MappingError as error:  # a training keeps its text
            raise error.reworded(spell_options(str(error))) from None

    return check
