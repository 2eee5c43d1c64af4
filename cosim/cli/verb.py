"""A verb: its options, each declared once as a field of a frozen dataclass, and the command line that runs it.

    @dataclass(frozen=True, kw_only=True)
    class CountOptions:
        network_file: Path = argument("NETWORK", FILE)
        chips: int = option("How many chips.", Integer(CHIPS), 100)
        compiling: Compiling = group_of(Compiling)

    def run(options: CountOptions, session: VerbSession) -> Result: ...

    command = verb(CountOptions, run, KeepingVerb)

The docstring of `run` is the help text. `cosim.run`, `cosim sweep` and `cosim explore` run a verb by
`call(command, options)`, as its command line does, but print nothing. docs/develop/add-a-verb.md has a whole one.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from difflib import get_close_matches
from inspect import Parameter, Signature
from keyword import iskeyword
from pathlib import Path
from textwrap import dedent
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from cosim.base.errors import CosimError, InputError
from cosim.cli.help import CONTEXT, GroupedOption, OptionGroup, Verb, long_name
from cosim.cli.progress import printing_warnings
from cosim.cli.session import VerbSession
from cosim.cli.settings import KEPT, KeepingVerb, RunVerb, describe_settings, is_fresh, setting_name, takes_several
from cosim.cli.types import Epsilon, Quantity

FILE = click.Path(path_type=Path)
_CLASS = "parameter_class"  # in a field's metadata, beside help, type and what else click has
T = TypeVar("T")
Declared = Any  # a declaration stands where a field has its default, of the field's own type


@dataclass(frozen=True, repr=False)
class Result:
    """Result of a verb, from which the command line makes output and exit status.

    figures: content of the file of --json; page: what is printed as text, and shown in a notebook; lines: text printed
    below it; report: last line, where the pages are; fault: a complaint for stderr, with which the verb ends with exit
    status 1, '' without words, None for none; error: raised at the end, when all else is written.
    """

    figures: Declared = None
    page: Declared = None
    lines: Sequence[str] = ()
    report: str = ""
    fault: str | None = None
    error: CosimError | None = None

    def __repr__(self) -> str:
        shown = [] if self.page is None else [str(self.page)]
        return "\n".join([*shown, *self.lines])

    def _repr_html_(self) -> str | None:
        return None if self.page is None else self.page._repr_html_()


def argument(metavar: str | None, kind: Declared, **more: Declared) -> Declared:
    """Declare an argument of the command line as a field: one that must be given, unless `required=False`."""
    default = {} if more.get("required", True) else {"default": more.get("default", () if "nargs" in more else None)}
    return field(metadata={_CLASS: click.Argument, "metavar": metavar, "type": kind, **more}, **default)


def option(
    text: str,
    kind: Declared = None,
    default: Declared = None,
    group: OptionGroup | None = None,
    **more: Declared,
) -> Declared:
    """Declare an option of the command line as a field.

    text: help; kind: type on the command line; default: as it is typed and shown, the field's own is read from it;
    group: section of the help text; more: as `click.Option` has it, and `flags`, the names where they are not that of
    the field with dashes.
    """
    value = default
    if isinstance(kind, Quantity | Epsilon) and default is not None:
        value = kind.convert(default, None, None)
    if callback := more.get("callback"):
        value = callback(None, None, value)
    if more.get("multiple") and default is None:
        value = ()
    shown = {_CLASS: GroupedOption, "group": group, "help": text, "type": kind, "default": default, **more}
    return field(default=value, metadata=shown)


def switch(text: str, group: OptionGroup | None = None, **more: Declared) -> Declared:
    """Declare a command-line option without a value as a field that is False without it."""
    return option(text, default=False, group=group, is_flag=True, **more)


def one_of(words: Sequence[str], text: str, group: OptionGroup | None = None, default: str | None = None) -> Declared:
    """Declare a command-line option that takes one of some words, by default the first."""
    return option(text, click.Choice(words), default or words[0], group)


def group_of(record: type[T]) -> T:
    """Declare the command-line options that are the fields of another dataclass, in this place."""
    return field(default_factory=record)


def _inner(record: Declared) -> "dict[str, type[Declared]]":
    """Return field name -> dataclass of the fields that hold options of their own."""
    return {one.name: one.default_factory for one in fields(record)
            if one.default_factory is not MISSING and isinstance(one.default_factory, type)}  # fmt: skip


def _own(record: Declared) -> list[str]:
    """Return the names of the fields that declare an option themselves."""
    return [one.name for one in fields(record) if _CLASS in one.metadata]


def parameters_of(record: type[Declared]) -> list[click.Parameter]:
    """Return the command-line arguments and options that the fields of a dataclass declare, in their order."""
    inner, found = _inner(record), list[click.Parameter]()
    for one in fields(record):
        if _CLASS in one.metadata:
            found.append(_parameter(one.name, **one.metadata))
        elif one.name in inner:
            found += parameters_of(inner[one.name])
    return found


def _parameter(
    name: str, parameter_class: type[Declared], flags: Sequence[str] = (), **more: Declared
) -> click.Parameter:
    if parameter_class is GroupedOption:
        flags = flags or [f"--{name.replace('_', '-')}"]
    return parameter_class([*flags, name], **more)


def build(record: type[T], values: Mapping[str, object]) -> T:
    """Return the dataclass of a verb's options with the values of its fields, by name, inner ones as well."""
    kind: Declared = record
    inner = {name: build(one, values) for name, one in _inner(kind).items()}
    return kind(**{name: values[name] for name in _own(kind) if name in values}, **inner)


def values_of(options: Declared) -> dict[str, object]:
    """Return field name -> value of all of a verb's options, those of inner dataclasses as well."""
    found = {name: getattr(options, name) for name in _own(type(options))}
    for name in _inner(type(options)):
        found |= values_of(getattr(options, name))
    return found


def verb(record: type[T], run: Callable[[T, VerbSession], Result], kind: type[Verb] = Verb, **more: Declared) -> Verb:
    """Return the command of a verb: it builds the options, runs it, prints what is to be said, and ends as the result
    says.

    more: as `click.Command` has it, such as `help`, by default the docstring of `run`; `words`: call it behind `cosim`,
    by default the name of the module's folder.
    """

    def called(**values: object) -> None:
        context = click.get_current_context()
        options = build(record, values)
        kept, fresh = context.meta.get(KEPT), is_fresh(context)
        with printing_warnings(), VerbSession(kept, fresh=fresh, echo=click.echo) as session:
            _finish(run(options, session), values.get("json_file"))

    more = {"context_settings": dict(CONTEXT), **more}  # of its own: the first context of a command decides its --help
    words = more.pop("words", run.__module__.rpartition(".")[0].rpartition(".")[2])
    text = more.pop("help", run.__doc__)
    made = kind(words.split()[-1], callback=called, params=parameters_of(record), help=text, **more)
    made.record, made.run, made.words = record, run, words
    return made


def _finish(result: Result, json_file: object) -> None:
    if text := str(result):
        click.echo(text)
    _write_json(result, json_file)
    if result.report:
        click.echo(f"\n{result.report}")
    if result.error is not None:
        raise result.error
    if result.fault is not None:
        if result.fault:
            click.echo(result.fault, err=True)
        raise SystemExit(1)


def _write_json(result: Result, json_file: object) -> None:
    if isinstance(json_file, Path):
        write_json(json_file, result.figures)


def write_json(path: Path, content: object) -> None:
    """Write the figures that a command line's --json asks for, a `json_object`, to its file.

    Raises InputError when it cannot be written.
    """
    import json

    from cosim.base.text import json_object
    from cosim.base.write import write_atomically

    write_atomically(path, f"{json.dumps(json_object(content), indent=2)}\n".encode())


def call(
    command: Verb, options: object, *, fresh: bool = False, echo: Callable[[str], None] = lambda _: None
) -> Result:
    """Run a verb with options, as its command line does, and return its result; prints nothing on stdout.

    With `fresh` a verb that goes on with what it has kept begins anew; echo: hears a line of results that the verb says
    while it runs.
    """
    context, values = click.Context(command, info_name=f"cosim {command.words}"), values_of(options)
    settings = describe_settings(context, values) if isinstance(command, RunVerb) else None
    with VerbSession(settings, fresh=fresh and isinstance(command, KeepingVerb), echo=echo) as session:
        result = command.run(options, session)
        _write_json(result, values.get("json_file"))
    return result


def parse(command: Verb, words: Sequence[str]) -> tuple[Declared, dict[str, object]]:
    """Return the options that a command line gives a verb, and those that are typed in it, long name -> value."""
    above = click.Context(click.Command("cosim"), info_name="cosim", **CONTEXT)
    with command.make_context(command.name, list(words), parent=above) as context:
        given: dict[str, object] = {
            setting_name(one): context.params.get(str(one.name))
            for one in command.params
            if isinstance(one, click.Option)
            and context.get_parameter_source(str(one.name)) is not ParameterSource.DEFAULT
        }
        return build(command.record, context.params), given


def with_values(command: Verb, options: T, values: Mapping[str, object]) -> T:
    """Return the options with other values, by the long names of those that are known; text is read as on the command
    line. Raises click.BadParameter, or InputError, for a value that an option does not take."""
    changed = dict[str, object]()
    for one in command.params:
        if isinstance(one, click.Option) and (name := setting_name(one)) in values:
            changed[str(one.name)] = _read(click.Context(command), one, values[name])
    return _changed(options, changed)


def python_name(param: click.Parameter) -> str:
    """Return the name of an option or argument in Python: that of its help text, with underscores; `with_` for a
    keyword."""
    if isinstance(param, click.Option):
        name = long_name(param).lstrip("-").replace("-", "_")
    else:
        found = re.search(r"\w+", (param.metavar or str(param.name)).lower())
        name = found[0] if found else str(param.name)
    return f"{name}_" if iskeyword(name) else name


def options_named(command: Verb, values: Mapping[str, object], arguments: Sequence[object] = ()) -> Declared:
    """Return a verb's options with its arguments in their order and values by their names in Python, or those of their
    fields; text is read as on the command line.

    What is none of them goes to the verb that `cosim sweep` and `cosim explore` run. Raises InputError for a name that
    is none of them, a value that it does not take, and an argument that is missing.
    """
    params = {python_name(one): one for one in command.params}
    fields_of = {str(one.name): python_name(one) for one in command.params}
    given = {fields_of.get(name, name): value for name, value in values.items()}
    for one in command.params:
        if arguments and not isinstance(one, click.Option):
            taken = len(arguments) if one.nargs == -1 else 1
            given[python_name(one)] = list(arguments) if one.nargs == -1 else arguments[0]
            arguments = arguments[taken:]
    if arguments:
        raise InputError(f"cosim {command.words} takes no further argument {arguments[0]!r}; give it by its name")
    rest = next((name for name, one in params.items() if one.type is click.UNPROCESSED), "")
    for name in [name for name in given if name not in params] if rest else ():
        given[rest] = [*map(str, _several(given.get(rest, ()))), *_words(name, given.pop(name))]
    if strange := next((name for name in given if name not in params), None):
        near = get_close_matches(strange, params, n=1)
        meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(params)}"
        raise InputError(f"cosim {command.words} has no option {strange!r}; {meant}")
    if missing := next((name for name, one in params.items() if one.required and name not in given), None):
        raise InputError(f"cosim {command.words} needs a value for {missing}; give {missing}=...")
    context = click.Context(command, info_name=f"cosim {command.words}")
    try:
        read = {str(params[name].name): _read(context, params[name], value) for name, value in given.items()}
    except click.BadParameter as error:
        raise InputError(error.format_message()) from None
    return build(command.record, read)


def _words(name: str, value: object) -> list[str]:
    """Return an option of Python as words of a command line."""
    option = f"--{name.rstrip('_').replace('_', '-')}"
    if isinstance(value, bool):
        return [option] if value else []
    return [word for one in _several(value) for word in (option, str(one))]


def _several(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else [value]


def describe_call(command: click.Command) -> tuple[str, Signature]:
    """Return docstring and signature of a verb as a Python function: its arguments, and each option with its help."""
    context = click.Context(command, info_name=f"cosim {command.name}")
    shown = [Parameter("arguments", Parameter.VAR_POSITIONAL)] if isinstance(command, click.Group) else []
    lines = [dedent(command.help or "").strip()]
    for one in sorted(command.params, key=lambda one: isinstance(one, click.Option)):
        name = python_name(one)
        if not isinstance(one, click.Option):
            default = Parameter.empty if one.required else None
            shown.append(Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default))
            continue
        shown.append(Parameter(name, Parameter.KEYWORD_ONLY, default=one.get_default(context, call=False)))
        lines.append(f"{name}: {one.help}")
    if isinstance(command, click.Group):
        shown.append(Parameter("options", Parameter.VAR_KEYWORD))
    return "\n\n".join(lines), Signature(shown)


def _read(context: click.Context, param: click.Parameter, value: object) -> object:
    """Return a value as a verb gets it, by the type of its argument or option; one of several may stand alone."""
    return param.process_value(context, _several(value) if takes_several(param) and value is not None else value)


def _changed(options: Declared, values: Mapping[str, object]) -> Declared:
    inner = {name: _changed(getattr(options, name), values) for name in _inner(type(options))}
    own = {name: values[name] for name in _own(type(options)) if name in values}
    return replace(options, **own, **inner)
