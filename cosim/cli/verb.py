"""Verbs of cosim: a verb's options, declared as fields of a frozen dataclass, and the command that runs the verb.

    @dataclass(frozen=True, kw_only=True)
    class CountOptions:
        network_file: Path = argument("NETWORK", FILE)
        chips: int = option("How many chips.", Integer(CHIPS), 100)
        compiling: Compiling = group_of(Compiling)

    def run(options: CountOptions, session: VerbSession) -> Result: ...

    command = verb(CountOptions, run, KeepingVerb)

The docstring of `run` is the help text. `cosim.run`, `cosim sweep` and `cosim explore` run a verb by
`call(command, options)`, which works as the command line does, but prints nothing. docs/develop/add-a-verb.md shows a
complete verb.
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
from cosim.cli.types import Quantity, Text

FILE = click.Path(path_type=Path)
_CLASS = "parameter_class"  # in a field's metadata, beside help, type and what else click has
T = TypeVar("T")
Declared = Any  # a declaration stands where a field has its default, of the field's own type


@dataclass(frozen=True, repr=False)
class Result:
    """The result of a verb, from which the command line makes its output and exit status.

    figures: content of the file that --json names; page: printed as text, shown as HTML in a notebook; lines: text
    printed below the page; report: last line printed, which says where the pages are; fault: if not None, the verb
    ends with exit status 1 and prints this text on stderr, nothing for ''; error: raised after all output.
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
    """Declare a command-line argument as a dataclass field; it must be given unless `required=False`.

    metavar: its name in the help text; kind: click type; more: as for `click.Argument`.
    """
    default = {} if more.get("required", True) else {"default": more.get("default", () if "nargs" in more else None)}
    return field(metadata={_CLASS: click.Argument, "metavar": metavar, "type": kind, **more}, **default)


def option(
    text: str,
    kind: Declared = None,
    default: Declared = None,
    group: OptionGroup | None = None,
    **more: Declared,
) -> Declared:
    """Declare a command-line option as a dataclass field.

    text: help; kind: click type; default: as typed and shown, the field's default is converted from it; group: section
    of the help text; more: as for `click.Option`, and `flags`, the option's names, by default -- and the field's name
    with dashes.
    """
    value = default
    if isinstance(kind, Quantity | Text) and default is not None:
        value = kind.convert(default, None, None)
    if callback := more.get("callback"):
        value = callback(None, None, value)
    if more.get("multiple") and default is None:
        value = ()
    shown = {_CLASS: GroupedOption, "group": group, "help": text, "type": kind, "default": default, **more}
    return field(default=value, metadata=shown)


def switch(text: str, group: OptionGroup | None = None, **more: Declared) -> Declared:
    """Declare a command-line flag as a dataclass field: True if the flag is given, else False."""
    return option(text, default=False, group=group, is_flag=True, **more)


def one_of(words: Sequence[str], text: str, group: OptionGroup | None = None, default: str | None = None) -> Declared:
    """Declare a command-line option that takes one of some words, by default the first, as a dataclass field."""
    return option(text, click.Choice(words), default or words[0], group)


def group_of(record: type[T]) -> T:
    """Declare a field that holds another dataclass of options; they are the verb's options, too, at this place."""
    return field(default_factory=record)


def _inner(record: Declared) -> "dict[str, type[Declared]]":
    """Return field name -> dataclass for the fields of a record that `group_of` declared."""
    return {one.name: one.default_factory for one in fields(record)
            if one.default_factory is not MISSING and isinstance(one.default_factory, type)}  # fmt: skip


def _own(record: Declared) -> list[str]:
    """Return the names of a record's fields that declare one option or argument."""
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
    """Build a verb's options, with all inner dataclasses, from field name -> value; other fields have their default."""
    kind: Declared = record
    inner = {name: build(one, values) for name, one in _inner(kind).items()}
    return kind(**{name: values[name] for name in _own(kind) if name in values}, **inner)


def values_of(options: Declared) -> dict[str, object]:
    """Return field name -> value for all of a verb's options, including those of inner dataclasses."""
    found = {name: getattr(options, name) for name in _own(type(options))}
    for name in _inner(type(options)):
        found |= values_of(getattr(options, name))
    return found


def verb(record: type[T], run: Callable[[T, VerbSession], Result], kind: type[Verb] = Verb, **more: Declared) -> Verb:
    """Return the command of a verb, which builds the options, calls `run`, prints the result and sets the exit status.

    record: dataclass of the options; kind: class of the command; more: as for `click.Command`, such as `help`, by
    default the docstring of `run`; and `words`, the words after `cosim` that call the verb, by default the name of the
    folder of the module of `run`.
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
    """Write figures, such as a verb's --json asks for, to a file as indented JSON.

    content: converted by `json_object`. Raises InputError when the file cannot be written.
    """
    import json

    from cosim.base.text import json_object
    from cosim.base.write import write_atomically

    write_atomically(path, f"{json.dumps(json_object(content), indent=2)}\n".encode())


def call(
    command: Verb, options: object, *, fresh: bool = False, echo: Callable[[str], None] = lambda _: None
) -> Result:
    """Run a verb as its command line does, but return its result and print nothing on stdout.

    options: an instance of the verb's dataclass; fresh: whether a `KeepingVerb` begins anew and does not continue an
    earlier run; echo: called with each line of results while the verb runs.
    """
    context, values = click.Context(command, info_name=f"cosim {command.words}"), values_of(options)
    settings = describe_settings(context, values) if isinstance(command, RunVerb) else None
    with VerbSession(settings, fresh=fresh and isinstance(command, KeepingVerb), echo=echo) as session:
        result = command.run(options, session)
        _write_json(result, values.get("json_file"))
    return result


def parse(command: Verb, words: Sequence[str]) -> tuple[Declared, dict[str, object]]:
    """Parse a verb's command line: return all options, and name -> value for options given there or by --config.

    words: the command line after the verb. The names are those of `setting_name`.
    """
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
    """Return a copy of a verb's options with some values changed; values: long name of an option -> value.

    Text is converted as on the command line; unknown names are ignored. Raises click.BadParameter or InputError for a
    value that the option does not accept.
    """
    changed = dict[str, object]()
    for one in command.params:
        if isinstance(one, click.Option) and (name := setting_name(one)) in values:
            changed[str(one.name)] = _read(click.Context(command), one, values[name])
    return _changed(options, changed)


def python_name(param: click.Parameter) -> str:
    """Return the name of an option or argument as a Python keyword argument.

    It is the name in the help text, with underscores for dashes; a Python keyword gets one at its end, such as `with_`.
    """
    if isinstance(param, click.Option):
        name = long_name(param).lstrip("-").replace("-", "_")
    else:
        found = re.search(r"\w+", (param.metavar or str(param.name)).lower())
        name = found[0] if found else str(param.name)
    return f"{name}_" if iskeyword(name) else name


def options_named(command: Verb, values: Mapping[str, object], arguments: Sequence[object] = ()) -> Declared:
    """Build a verb's options from Python values; text is converted as on the command line.

    values: name -> value, by the names of `python_name` or of the dataclass's fields; arguments: positional, in order.
    For `cosim sweep` and `cosim explore`, other names are options of the verb that they run. Raises InputError for an
    unknown name, a value that an option does not accept, and an argument that is missing or too many.
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
        given[rest] = [*map(str, _several(given.get(rest, ()))), *option_words(name, given.pop(name))]
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


def option_words(name: str, value: object) -> list[str]:
    """Return an option, given by its Python name and value, as words of a command line."""
    option = f"--{name.rstrip('_').replace('_', '-')}"
    if isinstance(value, bool):
        return [option] if value else []
    words = (",".join(map(str, one)) if isinstance(one, tuple) else str(one) for one in _several(value))
    return [part for word in words for part in (option, word)]


def _several(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else [value]


def describe_call(command: click.Command) -> tuple[str, Signature]:
    """Return the docstring and signature that a verb has as a Python function, with arguments and options."""
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
    """Convert a value as click does for an argument or option; where that takes several, one value need be no list."""
    return param.process_value(context, _several(value) if takes_several(param) and value is not None else value)


def _changed(options: Declared, values: Mapping[str, object]) -> Declared:
    inner = {name: _changed(getattr(options, name), values) for name in _inner(type(options))}
    own = {name: values[name] for name in _own(type(options)) if name in values}
    return replace(options, **own, **inner)
