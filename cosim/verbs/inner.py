"""Runs of one verb (command of cosim) by another: sweep, explore or harden. Each has its own folder and options."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from cosim.base.errors import CosimError, InputError
from cosim.base.settings import file_checksum
from cosim.base.text import is_file, json_object
from cosim.cli import load_verb
from cosim.cli.help import Verb
from cosim.cli.option_names import spell_options
from cosim.cli.session import StoppedError
from cosim.cli.settings import NO_SETTING, setting_name
from cosim.cli.verb import call, parse, with_values
from cosim.verbs.sweep.study import Value

Content = dict[str, object]  # of a verb's JSON file
SWEPT = ("montecarlo", "compare", "power", "compile", "trim")  # verbs whose results are figures
COMPLAINT = "some of its runs failed, or its audit refuses them; its folder has which"


@dataclass(frozen=True)
class InnerVerb:
    """A verb, that is a command of cosim, which another verb runs many times with the options that its user typed.

    name: of the verb; options: all its options, as parsed; given: name -> value of the options that were typed; jobs:
    worker processes of each run; fresh: whether every run begins anew.
    """

    name: str
    options: Any
    given: Mapping[str, object]
    jobs: int
    fresh: bool

    @property
    def command(self) -> Verb:
        """Return the click command of the inner verb."""
        return load_verb(self.name)

    @property
    def network(self) -> Path:
        """Return the network file that the inner verb was given."""
        return self.options.network_file

    def run(self, folder: Path, values: Mapping[str, object]) -> tuple[str, Content]:
        """Run the inner verb into a folder, with some options replaced; return (complaint, figures).
        values: long option name -> value. The complaint is '' if all went well. The figures are the content of the
        verb's JSON file, empty if it made none."""
        try:
            options = with_values(self.command, self.options, {**values, "jobs": self.jobs, "output": folder})
            result = call(self.command, options, fresh=self.fresh)
            if result.error is not None:
                raise result.error
        except StoppedError:
            raise
        except CosimError as error:
            return spell_options(str(error)), {}
        except click.ClickException as error:
            return error.format_message(), {}
        if result.fault:
            click.echo(result.fault, err=True)
        content = {} if result.figures is None else json.loads(json.dumps(json_object(result.figures)))
        return "" if result.fault is None else COMPLAINT, content


def read_inner(name: str, words: Sequence[str], *, jobs: int, fresh: bool) -> InnerVerb:
    """Parse the arguments and options of an inner verb, as typed; raises click's errors."""
    return InnerVerb(name, *parse(load_verb(name), words), jobs, fresh)


def split_values(text: str, option: str, form: str) -> tuple[str, str]:
    """Split NAME=VALUES, the text of --over or --vary, into name and values.

    option: the option's name, form: the expected form, both for the message. Raises InputError for text of another
    form.
    """
    name, equals, values = (part.strip() for part in text.partition("="))
    name = name.removeprefix("--")
    if not equals or not name:
        raise InputError(f"{option} must be {form}, not {text!r}")
    return name, values


def read_value(word: str, param: click.Option, where: str) -> Value:
    """Return a value that `cosim sweep` or `explore` gives to an option of the verb that it runs.

    It is "yes" or "no" for a flag, a number, or else the word as typed, which the option's own type reads.
    Raises InputError, beginning with `where`, or the error of the option's type.
    """
    try:
        value = param.type(word, param)
    except click.BadParameter as error:
        raise InputError(f"{where}: {error.message}") from None
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, int | float) else word


def fixed_options(verb: click.Command, given: Mapping[str, object]) -> Content:
    """Return name -> value of those typed options of an inner verb that may change a figure, ready for JSON."""
    no_setting = {setting_name(one) for one in verb.params if one.name in NO_SETTING}
    return {name: _plain(value) for name, value in given.items() if name not in no_setting}


def describe_network(network_file: Path) -> tuple[str, str]:
    """Return the name of a network for a page, and its hash.
    A backbone, which stays software in part, is named after its file."""
    from cosim.base.seal import checksum
    from cosim.exchange.checkpoint import load_network
    from cosim.network.software_only import stays_software
    from cosim.network.types import hash_network
    from cosim.verbs.words import network_name

    if stays_software(network_file):
        return network_file.stem, checksum(network_file.read_bytes())
    network = load_network(network_file)
    return network_name(network), hash_network(network)


def _plain(value: object) -> object:
    """Return an option's value in a form that JSON can hold; a path becomes its name, for a file with its checksum."""
    if isinstance(value, str) and value.endswith(".toml") and is_file(Path(value)):
        value = Path(value)
    if isinstance(value, Path):
        return f"{value.name} ({file_checksum(value)})" if is_file(value) else value.name
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
