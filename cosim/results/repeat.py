"""Instructions to repeat a run, for its page: the command, and the TOML that says all of it."""

import shlex

from cosim.base.settings import SETTINGS_FILE, RunSettings, format_settings
from cosim.base.text import shown_name
from cosim.base.version import __version__
from cosim.results.html import escape, format_fold

REPEAT = "Repeat this run"


def format_repeat(settings: RunSettings | None) -> str:
    """Return HTML of a folded section that says how to repeat the run; empty where no settings are kept."""
    if settings is None:
        return ""
    other = f"<p>This run was {escape(text)}.</p>" if (text := describe_version(settings)) else ""
    again = shlex.join(["cosim", *settings.verb.split(), "--config", SETTINGS_FILE, "-o"]) + " FOLDER"
    return format_fold(
        f"{REPEAT} of cosim {settings.verb}, version {settings.version or 'not known'}",
        f"{other}<pre>{escape(settings.command)}</pre>"
        f"<p>Or, with every option as it was in effect, by {SETTINGS_FILE} of its folder:</p>"
        f"<pre>{escape(again)}</pre><pre>{escape(format_settings(settings))}</pre>",
    )


def describe_version(settings: RunSettings) -> str:
    """Return a warning about a run that another version made; an empty text for one of this version."""
    if settings.version in ("", __version__):
        return ""
    return f"made by cosim {shown_name(settings.version)}; with {__version__} the same command may give other results"
