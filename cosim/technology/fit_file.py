"""The files of what a simulator has measured of a technology: its calibration, the chip's blocks, device noise."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar, cast

from cosim.base.errors import InputError, MissingToolError
from cosim.base.resources import models_path
from cosim.base.seal import read_sealed, seal_json
from cosim.base.store import cached_files, find_kept, keep_in_cache
from cosim.base.text import check_known, is_file, json_object, round_numbers, shown_path, typed


class TechnologyFit(Protocol):
    """A measurement of a technology as it is kept in a file, with the hash of everything that it depends on."""

    @property
    def technology(self) -> str:
        """Return the technology that was measured, by name."""
        ...

    @property
    def fingerprint(self) -> str:
        """Return the hash of everything that the measurement of the technology depends on."""
        ...


F = TypeVar("F", bound=TechnologyFit)


@dataclass(frozen=True)
class FitFile(Generic[F]):
    """Format of a measurement of a technology as a file: JSON, numbers at so many digits, the checksum last.

    what: names the measurement in messages; repair: what to do about a damaged file; check: (fit, where it is) raises
    InputError for numbers that no technology has; content: the fields of the file.
    """

    cls: type[F]
    format: int
    digits: int
    what: str
    repair: str
    check: Callable[[F, str], None]
    content: Callable[[F], Mapping[str, object]] = json_object

    def rounded(self, fit: F) -> dict[str, object]:
        """Return a technology's measurement as the content of its file, numbers rounded, without the checksum."""
        found = round_numbers({"format": self.format, **self.content(fit)}, self.digits)
        assert isinstance(found, dict)
        return found

    def to_bytes(self, fit: F) -> bytes:
        """Return a technology's measurement as the bytes of its file, the checksum last."""
        return seal_json(self.rounded(fit))

    def load(self, path: Path) -> F:
        """Read a technology's measurement from its file.

        Raises InputError that names the file where it is missing or damaged, and the field that is wrong.
        """
        where = shown_path(path)
        if not is_file(path):
            raise InputError(f"{where}: no {self.what} there; {self.repair}")
        return self.parse(read_sealed(path, self.repair), where)

    def parse(self, content: object, where: str) -> F:
        """Return the technology's measurement that the content of a file stands for, every field checked.

        Raises InputError that names the field where it is none.
        """
        fit = self._record(content, where)
        self.check(fit, where)
        return fit

    def _record(self, content: object, where: str) -> F:
        fields = cast("dict[str, object]", content) if isinstance(content, dict) else {}
        if fields.pop("format", None) != self.format:
            raise InputError(f"{where}: holds no {self.what} of format {self.format}; {self.repair}")
        check_known(fields, self.cls, where, self.repair)
        return typed(fields, self.cls, where, self.repair)

    def known(self, name: str, fingerprint: str, say: Callable[[str], None] = lambda _: None) -> F | None:
        """Return a technology's measurement by file name and fingerprint: the package's own, or from the cache."""

        def load(path: Path) -> F | None:
            return found if (found := self.load(path)).fingerprint == fingerprint else None

        return find_kept((models_path() / "devices" / name, *cached_files(name)), load, say)

    def find(
        self, name: str, fingerprint: str, measure: Callable[[], F], lacking: str, say: Callable[[str], None]
    ) -> F:
        """Return a technology's measurement that is `known`, or measure and keep it: the next run has the same numbers.

        lacking: that there is no such measurement, as the MissingToolError says it where `measure` has no simulator.
        """
        if (kept := self.known(name, fingerprint, say)) is not None:
            return kept
        try:
            measured = measure()
        except MissingToolError as error:
            raise MissingToolError(f"{lacking}: {error}") from None
        keep_in_cache(name, self.to_bytes(measured), self.what, say)
        return self._record(self.rounded(measured), measured.technology)
