"""Technologies by name, each one a TOML file: those that come with cosim, and one's own by path.

cosim/../models/devices/<name>.toml        docs/technologies.md says what stands in it
"""

import importlib.util
import math
import os
import tomllib
from pathlib import Path
from typing import Any

from cosim.errors import InputError, MissingToolError
from cosim.resources import models_path
from cosim.technology.types import DeviceLibrary, DeviceModel, Geometry, Sizing, Technology

DEFAULT_TECHNOLOGY = "generic180"
CORNERS = ("tt", "ff", "ss", "fs", "sf")
_NUMBERS = ("grid", "supply", "supply_max", "capacitor_density")
_DEVICE_NUMBERS = {"a_vt": 0.0, "a_beta": 0.0, "slope_factor": 1.0}  # and the least that each may be
_ROLES = tuple(Sizing.__dataclass_fields__)


def technology_names() -> tuple[str, ...]:
    """The technologies that come with cosim."""
    return tuple(sorted(path.stem for path in (models_path() / "devices").glob("*.toml")))


def load_technology(name: str, pdk_root: Path | None = None) -> Technology:
    """The technology of a name, or of a TOML file of one's own (a name that ends in .toml).

    `pdk_root`: where foundry kits stand, default $PDK_ROOT. Raises InputError for an unknown name, a file that is no
    technology or a wrong root, MissingToolError when the kit is not installed.
    """
    if name.endswith(".toml"):
        return _read(Path(name), pdk_root)
    if name not in technology_names():
        raise InputError(
            f"technology must be one of {', '.join(technology_names())}, or a .toml file of your own, not {name!r}"
        )
    return _read(models_path() / "devices" / f"{name}.toml", pdk_root)


def _read(path: Path, pdk_root: Path | None) -> Technology:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: the technology cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a TOML file ({error})") from None
    table = _Table(path, "", content)
    numbers: dict[str, Any] = {key: table.number(key) for key in _NUMBERS}
    name, summary, celsius = table.text("name"), table.text("summary"), table.number("celsius", least=-math.inf)
    devices = table.table("nfet"), table.table("pfet")
    sizing = table.table("sizing")
    roles = {role: _geometry(sizing.table(role), numbers["grid"]) for role in _ROLES}
    sizing.finish()
    library = _library(table.table("library"), table.table("corners"), path, pdk_root)
    table.finish()
    if numbers["supply"] > numbers["supply_max"]:
        raise InputError(f"{path}: supply must be at most supply_max {numbers['supply_max']:g}, not {table['supply']}")
    nfet, pfet = (_device(device) for device in devices)
    return Technology(name, summary, library, nfet, pfet, Sizing(**roles), celsius=celsius, **numbers)


def _device(table: "_Table") -> DeviceModel:
    model = DeviceModel(
        table.text("device"), **{key: table.number(key, least) for key, least in _DEVICE_NUMBERS.items()}
    )
    table.finish()
    return model


def _geometry(table: "_Table", grid: float) -> Geometry:
    lengths = {key: table.number(key) for key in ("w", "l")}
    cascode = None
    if "cascode" in table.content:
        inner = table.table("cascode")
        cascode = {key: inner.number(key) for key in ("w", "l")}
        inner.finish()
    table.finish()
    drawn = {**lengths, **{f"cascode.{key}": value for key, value in (cascode or {}).items()}}
    for key, value in drawn.items():
        if abs(value / grid - round(value / grid)) > 1e-6:
            raise InputError(
                f"{table.path}: {table.name}.{key} must be a multiple of the grid {grid:g} m, not {value:g}; "
                f"{round(value / grid) * grid:g} is the nearest"
            )
    return Geometry(lengths["w"], lengths["l"], (cascode["w"], cascode["l"]) if cascode else None)


def _library(table: "_Table", corners: "_Table", path: Path, pdk_root: Path | None) -> DeviceLibrary:
    file, also = table.text("file"), table.texts("also")
    install, package = table.text("install", ""), table.text("package", "")
    length_unit, diffusion = table.number("length_unit"), table.number("diffusion", least=0.0)
    bypass = table.truth("bypass", True)
    table.finish()
    sections = {corner: corners.text(corner, "") for corner in CORNERS}
    corners.finish()
    if not sections["tt"]:
        raise InputError(f"{path}: corners.tt must name a section of the library")
    main = _find_kit(file, package, install, pdk_root) if install else path.parent / file
    if not main.is_file():
        raise InputError(f"{path}: library.file must stand beside it; there is no {main}")
    return DeviceLibrary(
        main,
        tuple(main.parent / extra for extra in also),
        {corner: section for corner, section in sections.items() if section},
        length_unit,
        diffusion,
        bypass,
    )


def _find_kit(file: str, package: str, install: str, pdk_root: Path | None) -> Path:
    """A kit's main file: under --pdk-root, under $PDK_ROOT, or in an installed Python package."""
    if pdk_root is not None:
        if not (pdk_root / file).is_file():
            raise InputError(f"--pdk-root {pdk_root}: there is no {file} under it; name the folder above, or {install}")
        return pdk_root / file
    root = os.environ.get("PDK_ROOT", "")
    if root and (Path(root) / file).is_file():
        return Path(root) / file
    if package:
        found = importlib.util.find_spec(Path(package).parts[0])
        for location in (found and found.submodule_search_locations) or ():
            if (Path(location).parent / package).is_file():
                return Path(location).parent / package
    tried = f"PDK_ROOT is {root}, without {file}" if root else "neither --pdk-root nor PDK_ROOT is given"
    raise MissingToolError(f"foundry kit not found: {tried}; {install}")


class _Table:
    """One table of the file: every field is asked for once, and what nobody asked for is refused."""

    def __init__(self, path: Path, name: str, content: dict[str, Any]) -> None:
        self.path, self.name, self.content = path, name, content
        self.asked: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        return self.content[key]

    def _get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        if key not in self.content and default is None:
            raise InputError(f"{self.path}: {self._full(key)} is missing; docs/technologies.md says what it is")
        return self.content.get(key, default)

    def _full(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key

    def text(self, key: str, default: str | None = None) -> str:
        value = self._get(key, default)
        if not isinstance(value, str) or (not value and default is None):
            raise InputError(f"{self.path}: {self._full(key)} must be a text, not {value!r}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise InputError(f"{self.path}: {self._full(key)} must be a list of file names, not {value!r}")
        return tuple(value)

    def number(self, key: str, least: float | None = None) -> float:
        """A number in SI: positive, or not below `least`."""
        value = self._get(key)
        good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not good or (value <= 0 if least is None else value < least):
            wanted = "a positive number" if least is None else "a number"
            wanted += f" of at least {least:g}" if least is not None and math.isfinite(least) else ""
            raise InputError(f"{self.path}: {self._full(key)} must be {wanted} in SI units, not {value!r}")
        return float(value)

    def truth(self, key: str, default: bool) -> bool:
        value = self._get(key, default)
        if not isinstance(value, bool):
            raise InputError(f"{self.path}: {self._full(key)} must be true or false, not {value!r}")
        return value

    def table(self, key: str) -> "_Table":
        value = self._get(key)
        if not isinstance(value, dict):
            raise InputError(f"{self.path}: {self._full(key)} must be a table, not {value!r}")
        return _Table(self.path, self._full(key), value)

    def finish(self) -> None:
        """Raises InputError for a field that is not known, a typing error most of the time."""
        if unknown := sorted(set(self.content) - self.asked):
            raise InputError(
                f"{self.path}: {self._full(unknown[0])} is no field; known are {', '.join(sorted(self.asked))}"
            )
