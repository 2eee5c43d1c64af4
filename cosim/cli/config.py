"""--config: the settings of another run in place of the defaults; what the command line says goes before them."""

from difflib import get_close_matches
from pathlib import Path

import click

from cosim.base.errors import InputError
from cosim.base.settings import RunSettings, Value
from cosim.cli.help import long_name

GIVEN = "cosim.config"  # in a context's meta: the file and its settings
NO_SETTING = (
    "output",
    "json_file",
    "jobs",
    "timeout",
    "replay",
    "dask",
    "shard",
)  # names of what changes no result
_BESIDE = "-o, --json, --jobs, --timeout, --replay, --dask and --shard are no settings, but for the command line"
_REPAIR = "correct it, or leave it out"
_KINDS = (
    (click.types.BoolParamType, (bool,), "true or false"),
    (click.types.IntParamType, (int,), "a whole number"),
    (click.types.FloatParamType, (int, float), "a number"),
    ((click.types.StringParamType, click.Path, click.Choice), (str,), "text"),
)


def _take(ctx: click.Context, _option: click.Parameter, path: Path | None) -> None:
    if path is None or ctx.resilient_parsing:
        return
    from cosim.base.settings import load_settings
    from cosim.base.text import shown, shown_path

    where, settings, verb = shown_path(path), load_settings(path), verb_of(ctx)
    if settings.verb != verb:
        raise InputError(
            f"{where}: verb must be {verb!r}, not {shown(settings.verb)}; give cosim {verb} a file of its own, or this "
            "one to its verb"
        )
    ctx.default_map = _defaults(ctx, settings, where)
    ctx.meta[GIVEN] = where, settings


CONFIG = click.Option(
    ["--config"],
    type=click.Path(path_type=Path),
    is_eager=True,
    expose_value=False,
    callback=_take,
    help="Settings of another run, its run.toml; options beside it win.",
)


def verb_of(ctx: click.Context) -> str:
    """Return the verb of a click context, with its subcommand."""
    return " ".join(ctx.command_path.split()[1:]) or str(ctx.info_name)


def setting_name(param: click.Parameter) -> str:
    """Return the name that an argument or option of the command line has in run.toml."""
    if isinstance(param, click.Argument):
        return str(param.name).removesuffix("_file")
    return long_name(param).removeprefix("--")


def settings_of(params: list[click.Parameter], kind: type[click.Parameter]) -> dict[str, click.Parameter]:
    """Return name -> command-line arguments, or options, that are part of a run's settings."""
    known = (param for param in params if isinstance(param, kind) and param.expose_value)
    return {setting_name(param): param for param in known if param.name not in NO_SETTING}


def _defaults(ctx: click.Context, settings: RunSettings, where: str) -> dict[str, Value]:
    """Return the settings of a file by click's names. Raises InputError that names file and field."""
    found = dict[str, Value]()
    for table, kind in (("arguments", click.Argument), ("options", click.Option)):
        known = settings_of(ctx.command.params, kind)
        for name, value in getattr(settings, table).items():
            _check_name(name, list(known), f"{where}: {table}", ctx.command_path)
            _check_value(ctx, known[name], value, f"{where}: {table}.{name}")
            found[str(known[name].name)] = value
    return found


def _check_name(name: str, known: list[str], where: str, verb: str) -> None:
    from cosim.base.text import shown_name

    if name not in known:
        near = get_close_matches(name, known, n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise InputError(f"{where}.{shown_name(name)} is no setting of {verb}; {meant}{_REPAIR} ({_BESIDE})")


def _check_value(ctx: click.Context, param: click.Parameter, value: Value, where: str) -> None:
    from cosim.base.text import shown

    several = param.nargs == -1 or bool(getattr(param, "multiple", False))
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
