"""Technologies by name: `models/devices/<name>.toml` for those that come with cosim, one's own by path."""

from pathlib import Path

from cosim.base.errors import InputError
from cosim.base.resources import models_path
from cosim.base.text import read_toml, shown
from cosim.technology.derived import derive
from cosim.technology.description import read_technology
from cosim.technology.types import Technology

DEFAULT_TECHNOLOGY = "generic180"
_REPAIR = "docs/technologies.md says what a technology is"


def technology_names() -> tuple[str, ...]:
    """Return the names of the technologies that come with cosim."""
    return tuple(sorted(path.stem for path in (models_path() / "devices").glob("*.toml")))


def load_technology(name: str, pdk_root: Path | None = None) -> Technology:
    """Load the technology of a name, or of a TOML file of one's own (a name that ends in .toml).

    `pdk_root`: where foundry kits are, default $PDK_ROOT. Raises InputError for an unknown name, a file that is no
    technology or a wrong root, MissingToolError when the kit is not installed.
    """
    if name.endswith(".toml"):
        return _read(Path(name), pdk_root)
    if name not in technology_names():
        raise InputError(
            f"technology must be one of {', '.join(technology_names())}, or a .toml file of your own, not {name!r}"
        )
    return read_technology(models_path() / "devices" / f"{name}.toml", pdk_root)


def _read(path: Path, pdk_root: Path | None) -> Technology:
    """Read a file of one's own: a whole technology, or what it changes of another one, its `base`."""
    content = read_toml(path, _REPAIR)
    base = content.get("base")
    if base is None:
        return read_technology(path, pdk_root)
    if not isinstance(base, str) or base not in technology_names():
        raise InputError(f"{path}: base must be one of {', '.join(technology_names())}, not {shown(base)}")
    return derive(path, content, load_technology(base, pdk_root))
