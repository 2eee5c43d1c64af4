"""Settings of a verb's run in run.toml: all values in effect, and the command that repeats the run.

--config takes the settings of another run in place of the defaults; options on the command line override them.
"""

import os
import shlex
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from difflib import get_close_matches
from pathlib import Path

import click
from click.core import ParameterSource

from cosim.base.claim import MARKER
from cosim.base.errors import InputError
from cosim.base.settings import (
    SETTINGS_FILE,
    RunSettings,
    Scalar,
    Value,
    describe_version,
    file_checksum,
    load_settings,
    read_settings,
    write_settings,
)
from cosim.base.text import is_file, shown, shown_name, shown_path
from cosim.base.version import __version__
from cosim.base.write import write_atomically
from cosim.cli.help import HELP_ALL, Verb, long_name
from cosim.cli.progress import say

PAGE_FILE = "page.json"
KEPT = "cosim.settings"  # in a context's meta
GIVEN = "cosim.config"  # in a context's meta: the file and its settings
NO_SETTING = ("output", "json_file", "jobs", "timeout", "replay", "dask", "shard")  # names of what changes no result
_BESIDE = "-o, --json, --jobs, --timeout, --replay, --dask and --shard are no settings, but for the command line"
_REPAIR = "correct it, or leave it out"
_KINDS = (
    (click.types.BoolParamType, (bool,), "true or false"),
    (click.types.IntParamType, (int,), "a whole number"),
    (click.types.FloatParamType, (int, float), "a number"),
    ((click.types.StringParamType, click.Path, click.Choice), (str,), "text"),
)
_DRAWN = ("wires.csv", "positions.csv")  # of cosim layout, which --extracted and --gradient read
_LONGEST = 900  # characters of a file's name: run.toml has one on a line
_FRESH = "cosim.fresh"  # in a context's meta


def _take_config(ctx: click.Context, _option: click.Parameter, path: Path | None) -> None:
    if path is None or ctx.resilient_parsing:
        return
    where, settings, verb = shown_path(path), load_settings(path), verb_of(ctx)
    if settings.verb != verb:
        raise InputError(
            f"{where}: verb must be {verb!r}, not {shown(settings.verb)}; give cosim {verb} a file of its own, or this "
            "one to its verb"
        )
    ctx.default_map = _default_map(ctx, settings, where)
    ctx.meta[GIVEN] = where, settings


CONFIG = click.Option(
    ["--config"],
    type=click.Path(path_type=Path),
    is_eager=True,
    expose_value=False,
    callback=_take_config,
    help="Settings of another run, its run.toml; options beside it win.",
)


def verb_of(ctx: click.Context) -> str:
    """Return the name of a click context's verb, followed by that of its subcommand, if any."""
    return " ".join(ctx.command_path.split()[1:]) or str(ctx.info_name)


def setting_name(param: click.Parameter) -> str:
    """Return the name that an argument or option of the command line has in run.toml."""
    if isinstance(param, click.Argument):
        return str(param.name).removesuffix("_file")
    return long_name(param).removeprefix("--")


def takes_several(param: click.Parameter) -> bool:
    """Tell whether an argument or option of the command line takes several values."""
    return param.nargs == -1 or bool(getattr(param, "multiple", False))


def settings_of(params: list[click.Parameter], kind: type[click.Parameter]) -> dict[str, click.Parameter]:
    """Return setting name -> parameter, for parameters of a kind (arguments or options) that run.toml keeps."""
    known = (param for param in params if isinstance(param, kind) and param.expose_value)
    return {setting_name(param): param for param in known if param.name not in NO_SETTING}


def _default_map(ctx: click.Context, settings: RunSettings, where: str) -> dict[str, Value]:
    """Return click's parameter name -> value for the settings of a file, checked against a command's parameters.

    where: the file, for errors. Raises InputError, which names file and field, for an unknown name or a wrong value.
    """
    found = dict[str, Value]()
    for table, kind in (("arguments", click.Argument), ("options", click.Option)):
        known = settings_of(ctx.command.params, kind)
        for name, value in getattr(settings, table).items():
            _check_name(name, list(known), f"{where}: {table}", ctx.command_path)
            _check_value(ctx, known[name], value, f"{where}: {table}.{name}")
            found[str(known[name].name)] = value
    return found


def _check_name(name: str, known: list[str], where: str, verb: str) -> None:
    if name not in known:
        near = get_close_matches(name, known, n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise InputError(f"{where}.{shown_name(name)} is no setting of {verb}; {meant}{_REPAIR} ({_BESIDE})")


def _check_value(ctx: click.Context, param: click.Parameter, value: Value, where: str) -> None:
    several = takes_several(param)
    if isinstance(value, list) != several:
        raise InputError(f"{where} must be {'a list' if several else 'one value'}, not {shown(value)}; {_REPAIR}")
    types, words = _kind(param)
    for one in value if isinstance(value, list) else [value]:
        if not isinstance(one, types) or (isinstance(one, bool) and bool not in types):
            raise InputError(f"{where} must be {words}, not {shown(one)}; {_REPAIR}")
    try:
        param.type_cast_value(ctx, value)
    except click.BadParameter as error:
        raise InputError(f"{where}: {error.message.rstrip('.')}; {_REPAIR}") from None
    except InputError as error:
        raise InputError(f"{where}: {error}; {_REPAIR}") from None


def _kind(param: click.Parameter) -> tuple[tuple[type, ...], str]:
    for types, taken, words in _KINDS:
        if isinstance(param.type, types):
            return taken, words
    return (int, float, str), "text or a number"


def _take_fresh(ctx: click.Context, _option: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click calls it
    ctx.meta[_FRESH] = value


FRESH = click.Option(["--fresh/--resume"], default=False, expose_value=False, callback=_take_fresh, help="Begin anew.")


def is_fresh(ctx: click.Context) -> bool:
    """Return whether --fresh was given: the verb must begin anew and not continue what an earlier run has kept."""
    return ctx.meta.get(_FRESH, False)


class RunVerb(Verb):
    """A verb that writes its settings beside its results, and has --config, which takes the settings of another run."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        params = super().get_params(ctx)
        last = -2 if HELP_ALL in params else -1
        return [*params[:last], CONFIG, *params[last:]]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        typed, _, _ = self.make_parser(ctx).parse_args(list(args))
        rest = super().parse_args(ctx, args)
        ctx.meta[KEPT] = settings = describe_settings(ctx, ctx.params, typed)
        if (given := ctx.meta.get(GIVEN)) is not None:
            where, other = given
            _say_changed(where, other, settings)
        return rest


class KeepingVerb(RunVerb):
    """A verb that continues what an earlier run of the same command has kept, or begins anew with --fresh."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        params = super().get_params(ctx)
        place = params.index(CONFIG)
        return [*params[:place], FRESH, *params[place:]]


@contextmanager
def keeping_settings(place: Path, settings: RunSettings) -> Generator[None, None, None]:
    """Write run.toml into a verb's folder, or beside its file, and print how settings differ from earlier ones.

    In a folder, run.toml is taken back if the context ends without results. Raises InputError when it cannot be
    written.
    """
    with suppress(InputError):  # damaged: it is written again
        before = read_settings(place)
        if before is not None and before.verb == settings.verb:
            _say_differences(shown_path(place), before, settings)
    with _beside_its_results(place) if place.is_dir() else nullcontext():
        write_settings(place, settings)
        yield


@contextmanager
def _beside_its_results(folder: Path) -> Generator[None, None, None]:
    """Take run.toml back if the context ends without new results in the folder.

    The run.toml of an earlier run is written again where that run's page has not changed, or nothing else is in the
    folder. If there was none, the new one is removed where nothing else is in the folder.
    """
    before, page = (_content(folder / name) for name in (SETTINGS_FILE, PAGE_FILE))
    try:
        yield
    finally:
        alone = not {path.name for path in folder.iterdir()} - {SETTINGS_FILE, MARKER}
        if before is not None and (alone or (page is not None and page == _content(folder / PAGE_FILE))):
            write_atomically(folder / SETTINGS_FILE, before)
        elif before is None and alone:
            (folder / SETTINGS_FILE).unlink(missing_ok=True)


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if is_file(path) else None


def say_version(where: object, settings: RunSettings | None) -> None:
    """Print a notice if another version of cosim made the run with these settings; where: what the notice names."""
    if settings is not None and (text := describe_version(settings)):
        say(f"{where}: {text}")


def describe_settings(ctx: click.Context, given: Mapping[str, object], typed: Mapping[str, object] = {}) -> RunSettings:
    """Return the settings of a run: all values in effect, the command that repeats it, and checksums of its files.

    given: click's parameter name -> value; typed: the same names -> text on the command line.
    """
    params = ctx.command.params
    arguments = _values(ctx, settings_of(params, click.Argument), given, typed)
    known = dict(sorted(settings_of(params, click.Option).items()))  # arguments stay in the order of the command line
    options = _values(ctx, known, given, typed)
    words = [word for name, value in options.items() for word in _words(ctx, known[name], value)]
    named = [str(one) for value in arguments.values() for one in (value if isinstance(value, list) else [value])]
    verb = verb_of(ctx)
    if any(one.startswith("-") for one in named):
        words, named = [], [*words, "--", *named]
    inputs = checksums_of([*known.values(), *settings_of(params, click.Argument).values()], {**arguments, **options})
    return RunSettings(
        verb, __version__, shlex.join(["cosim", *verb.split(), *named, *words]), arguments, options, inputs
    )


def _values(
    ctx: click.Context,
    known: Mapping[str, click.Parameter],
    given: Mapping[str, object],
    typed: Mapping[str, object],
) -> dict[str, Value]:
    """Return setting name -> value in effect for parameters in `known`; parameters that are not set are left out."""
    found = {name: _value(ctx, param, given, typed) for name, param in known.items()}
    return {name: value for name, value in found.items() if value is not None}


def _value(
    ctx: click.Context, param: click.Parameter, given: Mapping[str, object], typed: Mapping[str, object]
) -> Value | None:
    """Return a parameter's value in effect; where it is None, the text that was given, since a word may mean None."""
    name = str(param.name)
    if (value := _plain(given.get(name), param)) is not None:
        return value
    source = ctx.get_parameter_source(name)
    if source is ParameterSource.COMMANDLINE:
        return _given(ctx, param, typed[name])
    if source is ParameterSource.DEFAULT_MAP:
        return _given(ctx, param, (ctx.default_map or {}).get(name))
    return _default(ctx, param)


def _default(ctx: click.Context, param: click.Parameter) -> Value | None:
    with suppress(click.BadParameter):  # such as a simulator that is not there: what is given is another value then
        return _given(ctx, param, param.default)  # not get_default, which asks the default map first
    return None


def _given(ctx: click.Context, param: click.Parameter, value: object) -> Value | None:
    """Return a given value as converted by the parameter's type, not its callback; or as typed, if that gives None."""
    if (plain := _plain(value, param)) is None:
        return None
    found = _plain(param.type_cast_value(ctx, value), param)
    return plain if found is None else found


def _plain(value: object, param: click.Parameter) -> Value | None:
    """Return a value in a type of TOML, or None if it is not set.

    A flag that is off counts as not set if no option exists to turn it off.
    """
    if isinstance(value, tuple | list):
        parts = [_joined(one) for one in value]
        return parts or None
    if value is False and not param.secondary_opts:
        return None
    return _scalar(value)


def _scalar(value: object) -> Scalar | None:
    if isinstance(value, Path):
        return str(value)
    return value if isinstance(value, Scalar) else None


def _joined(value: object) -> Scalar:
    """Return one value of several in a type of TOML; a tuple becomes a text with commas, as it was typed."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    found = _scalar(value)
    assert found is not None
    return found


def _words(ctx: click.Context, option: click.Parameter, value: Value) -> list[str]:
    """Return an option and its value as words of a command line; no words if the value is the default."""
    if value == _default(ctx, option):
        return []
    if isinstance(value, bool):
        return [long_name(option) if value else option.secondary_opts[0]]
    return [word for one in (value if isinstance(value, list) else [value]) for word in (long_name(option), str(one))]


def checksums_of(params: list[click.Parameter], values: Mapping[str, Value]) -> dict[str, str]:
    """Return path -> checksum of each file that the values of these parameters name.

    Values are by setting name. Files include those read from a folder of `cosim layout`, a technology's .toml file,
    and words that are handed on to another verb's command line. A file that cannot be read is left out.
    """
    names = [values.get(setting_name(param)) for param in params if isinstance(param.type, click.Path)]
    handed_on = [values.get(setting_name(param)) for param in params if param.type is click.UNPROCESSED]
    names += [word for words in handed_on if isinstance(words, list) for word in words]
    technology = values.get("technology")
    found = dict[str, str]()
    for name in [*names, technology if str(technology).endswith(".toml") else None]:
        if isinstance(name, str) and len(ascii(name)) < _LONGEST:
            with suppress(OSError, ValueError):  # which the verb says
                for path in (name, *(os.path.join(name, one) for one in _DRAWN)):
                    if Path(path).is_file():
                        found[path] = file_checksum(Path(path))
    return found


def _say_changed(where: str, given: RunSettings, settings: RunSettings) -> None:
    """Print how a run may differ from the run whose settings --config gave: another version, and files that changed.

    where: the file of the given settings.
    """
    say_version(where, given)
    for name, found in settings.inputs.items():
        if given.inputs.get(name, found) != found:
            say(f"{shown_name(name)} is not the file that {where} is of: SHA-256 {found}, not {given.inputs[name]}")


def _say_differences(where: str, before: RunSettings, settings: RunSettings) -> None:
    old, new = ({**one.arguments, **one.options} for one in (before, settings))
    differing = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    if differing:
        changes = ", ".join(f"{name} {_shown(new.get(name))}, not {_shown(old.get(name))}" for name in differing)
        say(f"{where}: other settings than before: {changes}")


def _shown(value: Value | None) -> str:
    return "not set" if value is None else shown_name(value)
