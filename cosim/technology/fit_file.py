"""Files of measurements of a technology by a simulator: calibration, blocks around a network, device noise."""

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
    """A measurement of a technology that is kept in a file, with a hash of everything that it depends on."""

    @property
    def technology(self) -> str:
        """Return the name of the technology that was measured."""
        ...

    @property
    def fingerprint(self) -> str:
        """Return the hash of everything that the measurement of the technology depends on."""
        ...


F = TypeVar("F", bound=TechnologyFit)


@dataclass(frozen=True)
class FitFile(Generic[F]):
    """The file format of one kind of measurement of a technology: JSON, rounded numbers, the checksum last.

    cls: dataclass of the measurement; format: version of the format; digits: significant digits of numbers; what: the
    measurement's name in messages; repair: advice for a damaged file; check: function of (fit, where it is) that raises
    InputError for numbers that no technology has; content: function from the measurement to the fields of its file.
    """

    cls: type[F]
    format: int
    digits: int
    what: str
    repair: str
    check: Callable[[F, str], None]
    content: Callable[[F], Mapping[str, object]] = json_object

    def rounded(self, fit: F) -> dict[str, object]:
        """Return the content of a measurement's file, with numbers rounded and without the checksum."""
        found = round_numbers({"format": self.format, **self.content(fit)}, self.digits)
        assert isinstance(found, dict)
        return found

    def to_bytes(self, fit: F) -> bytes:
        """Return the bytes of a measurement's file, with the checksum last."""
        return seal_json(self.rounded(fit))

    def load(self, path: Path) -> F:
        """Read a technology's measurement from its file.

        Raises InputError that names the file if it is missing or damaged, and a field if it is wrong.
        """
        where = shown_path(path)
        if not is_file(path):
            raise InputError(f"{where}: no {self.what} there; {self.repair}")
        return self.parse(read_sealed(path, self.repair), where)

    def parse(self, content: object, where: str) -> F:
        """Return the measurement that a file's content describes, with every field checked. where: for messages.

        Raises InputError that names the wrong field.
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
        """Return the kept measurement with this file name and fingerprint, of the package or of the cache; else None.

        say: receives messages about damaged files.
        """

        def load(path: Path) -> F | None:
            return found if (found := self.load(path)).fingerprint == fingerprint else None

        return find_kept((models_path() / "devices" / name, *cached_files(name)), load, say)

    def find(
        self, name: str, fingerprint: str, measure: Callable[[], F], lacking: str, say: Callable[[str], None]
    ) -> F:
        """Return the `known` measurement, or else run `measure` and keep its result in the cache for the next run.

        lacking: beginning of the MissingToolError that is raised if `measure` has no simulator.
        """
        if (kept := self.known(name, fingerprint, say)) is not None:
            return kept
        try:
            measured = measure()
        except MissingToolError as error:
            raise MissingToolError(f"{lacking}: {error}") from None
        keep_in_cache(name, self.to_bytes(measured), self.what, say)
        return self._record(self.rounded(measured), measured.technology)
