"""A verb that runs: its folder, the settings that it writes there, and who hears of it."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from cosim.base.settings import RunSettings
from cosim.cli.progress import say
from cosim.cli.settings import keeping_settings


class VerbSession:
    """One run of a verb. Its folder is released when it ends.

    settings: written beside the results, None for a verb that writes no run.toml; fresh: nothing that was kept is used
    again; echo: prints a line of results while the verb runs.
    """

    def __init__(
        self,
        settings: RunSettings | None = None,
        *,
        fresh: bool = False,
        echo: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.settings, self.fresh, self.echo = settings, fresh, echo
        self._held = ExitStack()

    def __enter__(self) -> "VerbSession":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.__exit__(kind, error, trace)

    def keep_settings(self, place: Path) -> None:
        """Write the settings into the verb's folder, or beside its file; says what differs from before.

        Raises InputError when they cannot be written.
        """
        if self.settings is not None:
            self._held.enter_context(keeping_settings(place, self.settings))

    def take_folder(self, verb: str, folder: Path) -> None:
        """Make a verb's folder and hold it until the verb ends, see `own_folder`; says what it kept and is damaged, and
        removes it where the session is fresh."""
        from cosim.base.claim import own_folder
        from cosim.base.store import clear_kept, describe_damaged_results

        self._held.enter_context(own_folder(folder, verb))
        if self.fresh:
            clear_kept(folder)
        self.keep_settings(folder)
        for text in describe_damaged_results(folder):
            say(text)
