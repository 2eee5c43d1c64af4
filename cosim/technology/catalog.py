"""Technologies by name: `models/devices/<name>.toml` for those that come with cosim, one's own by path."""

from pathlib import Path

from cosim.errors import InputError
from cosim.resources import models_path
from cosim.technology.description import read_technology
from cosim.technology.types import Technology

DEFAULT_TECHNOLOGY = "generic180"


def technology_names() -> tuple[str, ...]:
    """The technologies that come with cosim."""
    return tuple(sorted(path.stem for path in (models_path() / "devices").glob("*.toml")))


def load_technology(name: str, pdk_root: Path | None = None) -> Technology:
    """The technology of a name, or of a TOML file of one's own (a name that ends in .toml).

    `pdk_root`: where foundry kits stand, default $PDK_ROOT. Raises InputError for an unknown name, a file that is no
    technology or a wrong root, MissingToolError when the kit is not installed.
    """
    if name.endswith(".toml"):
        return read_technology(Path(name), pdk_root)
    if name not in technology_names():
        raise InputError(
            f"technology must be one of {', '.join(technology_names())}, or a .toml file of your own, not {name!r}"
        )
    return read_technology(models_path() / "devices" / f"{name}.toml", pdk_root)
