"""A verb that another verb runs: its command line as if it had been typed, its folder, and the results in there."""

import io
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import click

from cosim.base.errors import CosimError
from cosim.cli import load_verb
from cosim.cli.config import NO_SETTING, setting_name
from cosim.cli.fresh import is_fresh
from cosim.cli.option_names import spell_options
from cosim.cli.settings import KeepingVerb

Content = dict[str, object]  # of a verb's JSON file
RESULTS = {  # of a verb: the file that its figures are in, or where there is none that of a cut backbone
    "montecarlo": ("summary.json",),
    "compare": ("comparison.json", "partitions.json"),
    "power": ("power.json",),
    "compile": ("design.json", "partitions.json"),
    "trim": ("trim.json",),
}
COMPLAINT = "some of its runs failed, or its audit refuses them; its folder has which"


@dataclass(frozen=True)
class Inner:
    """A verb, its arguments as they were typed, and the worker processes of each run."""

    name: str
    rest: tuple[str, ...]
    jobs: int

    @property
    def verb(self) -> click.Command:
        """The verb's command."""
        return load_verb(self.name)

    def context(self, more: Sequence[str] = ()) -> click.Context:
        """Parse the verb's command line as if it had been typed; nothing that its context keeps is shared with
        another."""
        command = click.get_current_context().find_root().command
        above = click.Context(command, info_name="cosim", **command.context_settings)
        return self.verb.make_context(self.name, [*self.rest, *more], parent=above)

    def given(self) -> tuple[Mapping[str, object], Path]:
        """Return the options that were typed, long name -> value, and the network's file."""
        with self.context() as context:
            asked = [one for one in self.verb.params if isinstance(one, click.Option) and _is_given(context, one)]
            return {setting_name(one): context.params.get(one.name or "") for one in asked}, context.params[
                "network_file"
            ]

    def run(self, folder: Path, more: Sequence[str]) -> tuple[str, Content]:
        """Run it in a folder: what went wrong there, or '', and what its results hold, nothing without such."""
        from cosim.base.seal import read_sealed

        known = {param.name for param in self.verb.params}
        extra = [f"--jobs={self.jobs}"] if "jobs" in known else []
        if is_fresh() and isinstance(self.verb, KeepingVerb):
            extra.append("--fresh")
        reason = self._call([*more, *extra, f"--output={folder}"])
        if reason not in ("", COMPLAINT):
            return reason, {}
        path = next((folder / file for file in RESULTS[self.name] if (folder / file).is_file()), None)
        return reason, {} if path is None else read_sealed(path, "the same command writes it again")

    def _call(self, more: Sequence[str]) -> str:
        try:
            with self.context(more) as context, redirect_stdout(io.StringIO()):
                self.verb.invoke(context)
        except SystemExit as end:
            return COMPLAINT if end.code else ""
        except CosimError as error:
            return spell_options(str(error))
        except click.ClickException as error:
            return error.format_message()
        return ""


def fixed_options(verb: click.Command, given: Mapping[str, object]) -> Content:
    """Return the options that were typed and may change a figure, as JSON has them."""
    no_setting = {setting_name(one) for one in verb.params if one.name in NO_SETTING}
    return {name: _plain(value) for name, value in given.items() if name not in no_setting}


def describe_network(network_file: Path) -> tuple[str, str]:
    """Return the name of a network on a page, and its hash; a backbone has the name of its file."""
    from cosim.base.seal import checksum
    from cosim.exchange.checkpoint import load_network, stays_software
    from cosim.network.arrays import hash_network
    from cosim.verbs.words import network_name

    if stays_software(network_file):
        return network_file.stem, checksum(network_file.read_bytes())
    network = load_network(network_file)
    return network_name(network), hash_network(network)


def _is_given(context: click.Context, option: click.Option) -> bool:
    from click.core import ParameterSource

    return context.get_parameter_source(option.name or "") is not ParameterSource.DEFAULT


def _plain(value: object) -> object:
    """Return a value of the command line as JSON can have it; a file is its name, without its folder."""
    if isinstance(value, Path):
        return value.name
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
