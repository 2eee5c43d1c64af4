"""Write the pages of docs/reference that come from the code: every option, every JSON key, every Python name.

    python scripts/write_reference.py docs                  # reference/cli.md, files.md, python-api.md, and llms.txt
    python scripts/write_reference.py docs --names FOLDER   # a page for each folder of the package, for `make docs`

In cli.md the prose between the blocks stays as it is; the other pages are written whole.
"""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from textwrap import fill, indent
from types import UnionType
from typing import Any, get_args, get_type_hints

import click

import cosim
from cosim.cli import GROUPS, VERBS, _cosim, load_verb
from cosim.cli.help import Groups, format_group, format_manual, shared_groups
from cosim.cli.verb import describe_call

PACKAGE = Path(cosim.__file__).parent
WIDTH = 78  # characters, as click takes them of 80
COLUMNS = 120  # of the manual's text
SHARED = "## Options that verbs share"
_BLOCK = re.compile(r"^    Usage: cosim(?P<verb>(?: [a-z]+)*) .*?(?=^\S|^    Usage: |\Z)", re.MULTILINE | re.DOTALL)
_AFTER_SHARED = re.compile(rf"(?<=^{SHARED}\n).*?(?=^\S)(?P<prose>.*?)^    .*?(?=^\S|\Z)", re.MULTILINE | re.DOTALL)

JSON_FILES = (  # name, verbs that write it, module:class of its content
    ("comparison.json", "compare, demo", "cosim.verbs.compare.page:ComparisonContent"),
    ("pvt.json", "compare --pvt", "cosim.verbs.compare.pvt:Sweep"),
    ("power.json", "power", "cosim.verbs.power.study:PowerSummary"),
    ("summary.json", "montecarlo, merge", "cosim.verbs.montecarlo.chips:ChipSummary"),
    ("chips.jsonl, one line for each chip", "montecarlo, merge", "cosim.verbs.montecarlo.chips:ChipRecord"),
    ("contributions.json", "montecarlo --contributions", "cosim.verbs.montecarlo.run:KeptContributions"),
    ("trim.json", "trim", "cosim.verbs.trim.run:TrimSummary"),
    ("signoff.json", "signoff", "cosim.verbs.signoff.study:SignOff"),
    ("sweep.json", "sweep", "cosim.verbs.sweep.study:SweepSummary"),
    ("explore.json", "explore", "cosim.verbs.explore.study:Exploration"),
    ("harden.json", "harden", "cosim.verbs.harden.study:Hardening"),
    ("diff.json", "diff -o", "cosim.verbs.diff.difference:Difference"),
    ("margins.json", "compile --margins", "cosim.verbs.compile.margins:Margins"),
    ("the file of --json", "sensitivity", "cosim.verbs.sensitivity.study:Sensitivities"),
    ("the file of --json", "characterize ladder", "cosim.verbs.characterize.ladder:LadderSummary"),
    ("partitions.json", "compile of a backbone", "cosim.verbs.partitions.study:PartitionSummary"),
    ("partitions.json", "compare of a backbone", "cosim.verbs.partitions.study:DeployedSummary"),
)

_ARRAYS = """\
## Arrays

`numpy.load` reads these. [Simulate](../how-to/simulate.md#simulationnpz) has the keys of `simulation.npz`.

| File | Written by | Key | Shape | Content |
|---|---|---|---|---|
| `waveforms.npz` | `simulate --waveforms`, `--probe` | `time_s` | (points,) | time, s |
| | | `in.0`, `readout.0`, `power`, ... | (points,) | currents in A, voltages in V, the supply power in W |
| | | `layer1.0`, ..., `clk0`, `resetb` | (points,) | states and clocks, whole numbers |
| | | `units` | () | JSON text: the unit of each key |
| `power.npz` | `power` | `figures` | (figures,) | names, such as `ngspice power rows` |
| | | `power_w` | (figures, n) | the power of each figure and sample, W |
| `pvt.npz` | `compare --pvt` | `conditions` | (conditions,) | names, such as `ss, 60 C, 1.71 V` |
| | | `decisions`, `power_w` | (conditions, n) | the circuit's decision, -1 for a failed run; mean supply power, W |
| | | `wrong` | (conditions, n, cells) | frames whose state is not the software's |

`power.npz` and `pvt.npz` name their samples by `indices`, `sums`, `lengths` and `y` as `simulation.npz` does."""


def format_cli_page(text: str) -> str:
    """Return reference/cli.md with the help of this version in its blocks. Raises SystemExit where a verb has none."""
    lacking = sorted({*VERBS} - {found["verb"].split()[0] for found in _BLOCK.finditer(text) if found["verb"]})
    if lacking:
        raise SystemExit(f"cli.md: needs a heading and an indented line 'Usage: cosim VERB ' for {lacking}")
    text = _BLOCK.sub(lambda found: _block(help_of(found["verb"].split())), text)
    return _AFTER_SHARED.sub(lambda found: f"\n{found['prose']}{_block(shared_options())}", text).rstrip() + "\n"


def help_of(words: list[str]) -> str:
    """Return what the manual has of a verb, given as its words; none for cosim itself."""
    with context_of(words) as ctx:
        return format_manual(ctx)


def shared_options() -> str:
    """Return every group of options that several verbs have, in full."""
    groups = Groups()
    for words in commands():
        with context_of(words) as ctx:
            for group, options in shared_groups(ctx).items():
                known = groups.setdefault(group, [])
                known += [option for option in options if option.opts not in [one.opts for one in known]]
    with context_of([]) as ctx:
        return "\n\n".join(format_group(ctx, group, options) for group, options in groups.items())


def commands() -> Iterator[list[str]]:
    """Yield the words of every verb and of every subcommand."""
    for verb in VERBS:
        with context_of([verb]) as ctx:
            yield [verb]
            if isinstance(ctx.command, click.Group):
                yield from ([verb, name] for name in ctx.command.list_commands(ctx))


def context_of(words: list[str]) -> click.Context:
    """Return a context of a command for its help."""
    command: click.Command = _cosim
    ctx = click.Context(command, info_name="cosim", terminal_width=WIDTH, **_cosim.context_settings)
    for word in words:
        assert isinstance(command, click.Group)
        found = command.get_command(ctx, word)
        assert found is not None, f"no command {word}"
        command, ctx = found, click.Context(found, info_name=word, parent=ctx)
    return ctx


def _block(text: str) -> str:
    return indent(text.rstrip(), "    ") + "\n\n"


def files_page() -> str:
    """Return reference/files.md: the keys of every JSON file that a verb writes, type by type."""
    parts = [
        "# JSON files",
        _paragraph(
            "Programs read the results of a verb from these files. Fractions are fractions of 1, and quantities are in "
            "SI units (watt, ampere, second), areas in square micrometre, unless a key says otherwise. A key whose "
            "value is null by default is left out where it is null. Each file has a checksum (`cosim verify`). "
            "`cosim.run` and the functions of `import cosim` return the same content as `figures`. This page is made "
            "from the code."
        ),
        "## Files",
        "| File | Written by | Content |\n|---|---|---|",
    ]
    seen = dict[type, None]()
    for name, verbs, home in JSON_FILES:
        module, _, kind = home.partition(":")
        record = getattr(import_module(module), kind)
        parts[-1] += f"\n| `{name}` | {', '.join(f'`{verb}`' for verb in verbs.split(', '))} | {_link(record)} |"
        _collect(record, seen)
    parts += [_ARRAYS, "## Types"]
    for record in sorted(seen, key=lambda one: one.__name__):
        parts += [f"### {record.__name__}", _paragraph(_summary(record)), _keys(record)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _collect(record: type, seen: dict[type, None]) -> None:
    """Add a dataclass and those in its fields."""
    if record in seen:
        return
    seen[record] = None
    for kind in get_type_hints(record).values():
        for part in _parts(kind):
            if is_dataclass(part) and isinstance(part, type):
                _collect(part, seen)


def _parts(kind: Any) -> Iterator[Any]:
    yield kind
    for one in get_args(kind):
        yield from _parts(one)


def _keys(record: type) -> str:
    hints = get_type_hints(record)
    rows = [f"| `{one.name.rstrip('_')}` | {_type(hints[one.name])} |" for one in fields(record)]
    return "\n".join(["| Key | Value |", "|---|---|", *rows]) if rows else ""


_PLAIN = {float: "number", int: "whole number", str: "text", bool: "true or false", type(None): "null", object: "any"}


def _type(kind: Any) -> str:
    """Return a type as JSON has it, in words."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if is_dataclass(kind) and isinstance(kind, type):
        return _link(kind)
    inner, name = get_args(kind), getattr(kind, "__origin__", kind)
    title = getattr(name, "__name__", str(name))
    if title == "Union" or isinstance(kind, UnionType):
        return " or ".join(dict.fromkeys(_type(one) for one in inner))
    if title == "Literal":
        return " or ".join(f"`{one}`" for one in inner)
    if title in ("dict", "Mapping"):
        return f"object: {_type(inner[0])} to {_type(inner[1])}"
    if title in ("tuple", "list", "Sequence"):
        return f"list of {', '.join(dict.fromkeys(_type(one) for one in inner if one is not ...))}"
    if hasattr(kind, "_fields"):
        return f"list: {', '.join(kind._fields)}"
    return "any"


def _link(record: type) -> str:
    return f"[{record.__name__}](#{record.__name__.lower()})"


def _summary(item: object) -> str:
    return " ".join(inspect.cleandoc(item.__doc__ or "").split()).replace("|", "\\|").replace("<", "&lt;")


def _paragraph(text: str) -> str:
    return fill(text, COLUMNS, break_long_words=False, break_on_hyphens=False)


def python_page() -> str:
    """Return reference/python-api.md: the names of `import cosim`, and each verb as a function."""
    parts = [
        "# Python names",
        _paragraph(
            "`import cosim` has these names. [From Python](../how-to/python.md) shows how they are used. The built "
            "manual has a page with the names of each folder of the package as well. This page is made from the code."
        ),
    ]
    for name in cosim.__all__:
        item = getattr(cosim, name)
        parts += [f"## cosim.{name}", *_describe(item)]
        if inspect.isclass(item) and not issubclass(item, Exception):
            for method, member in _members(item):
                parts += [f"### {name}.{method}", *_describe(member)]
    parts += [
        "## Verbs",
        _paragraph(
            "Each verb of the command line is a function of this name. Its parameters are the verb's arguments and the "
            "long names of its options with underscores; a name that is a keyword of Python ends in an underscore "
            "(`with_`). The [command line](cli.md) explains each. With `fresh=True` a verb begins anew. "
            "A function returns a result with `figures` (the content of the file of `--json`), `page`, `lines`, "
            "`report` and `fault`."
        ),
    ]
    for heading, verbs in GROUPS.items():
        rows = [f"| `cosim.{verb}` | {text} | {_parameters(verb)} |" for verb, text in verbs.items()]
        parts += [f"### {heading}", "\n".join(["| Function | What it does | Parameters |", "|---|---|---|", *rows])]
    return "\n\n".join(parts) + "\n"


def _members(item: type) -> Iterator[tuple[str, object]]:
    """Yield the public methods and properties of a class, those of its public bases as well."""
    for name in dict.fromkeys([*vars(item), *dir(item)]):
        member = inspect.getattr_static(item, name, None)
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)) and member.__doc__:
            yield name, member


def _describe(item: object) -> list[str]:
    """Return signature and docstring of a name."""
    text = inspect.cleandoc(item.__doc__ or "")
    paragraphs = [
        indent(part, "") if part.startswith("    ") else _paragraph(" ".join(part.split()))
        for part in re.split(r"\n\n", text)
    ]
    signature = [f"    {inspect.signature(item)}"] if callable(item) and not _is_error(item) else []
    return [*(_signature(line) for line in signature), *paragraphs]


def _is_error(item: object) -> bool:
    return inspect.isclass(item) and issubclass(item, Exception)


def _signature(line: str) -> str:
    """Return a signature with a parameter a line where it is long."""
    plain = line.strip().replace("'", "")
    plain = re.sub(r"\b(?:[a-z_]+\.)+([A-Z]\w+)", r"\1", plain)
    return fill(plain, COLUMNS - 4, initial_indent="    ", subsequent_indent="        ", break_on_hyphens=False)


def _parameters(verb: str) -> str:
    _, signature = describe_call(load_verb(verb) if verb != "characterize" else load_verb("characterize"))
    return ", ".join(f"`{name}`" for name in signature.parameters)


def name_pages() -> dict[str, str]:
    """Return file name -> page with every public name of a folder of the package, as Markdown. It imports nothing."""
    return {f"{folder.name}.md": _name_page(folder) for folder in sorted(PACKAGE.iterdir()) if folder.is_dir() and
            (folder / "__init__.py").is_file()}  # fmt: skip


def _name_page(folder: Path) -> str:
    parts = [f"# cosim.{folder.name}", _first(ast.parse((folder / "__init__.py").read_text()))]
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        shown = [one for one in tree.body if isinstance(one, ast.ClassDef | ast.FunctionDef) and one.name[0] != "_"]
        if shown:
            module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
            rows = [f"| `{one.name}` | {_first(one)} |" for one in shown]
            parts += [f"## {module}", _first(tree), "\n".join(["| Name | What it is |", "|---|---|", *rows])]
    return "\n\n".join(parts) + "\n"


def _first(node: ast.Module | ast.ClassDef | ast.FunctionDef) -> str:
    text = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
    return text.replace("|", "\\|").replace("<", "&lt;")


def index_page(menu: str, docs: Path) -> str:
    """Return llms.txt, the index for programs that read the manual: every page of the menu with its first sentence."""
    parts = ["# cosim", f"> {_opening(docs / 'index.md')}"]
    for line in menu.splitlines():
        found = re.match(r"  (?P<inner> *)- (?P<title>.+): *(?P<page>[\w/-]+\.md)?$", line)
        if found is None:
            continue
        if found["page"] is None:
            parts.append(f"## {found['title']}" if not found["inner"] else f"### {found['title']}")
        else:
            parts.append(f"- [{found['title']}]({found['page']}): {_opening(docs / found['page'])}")
    return re.sub(r"(?<=\))(.*)\n\n(?=- )", r"\1\n", "\n\n".join(parts)) + "\n"


def _opening(page: Path) -> str:
    """Return the first sentence of a page's first paragraph, of links the words alone."""
    paragraphs = page.read_text(encoding="utf-8").split("\n\n")[1:]
    text = " ".join(next(part for part in paragraphs if part[:1] not in "#|!- " and part[:3] != "```").split())
    return re.split(r"(?<=[.?])\s", re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text))[0]


def write_pages(docs: Path) -> None:
    """Write the three pages of docs/reference, and llms.txt."""
    place = docs / "reference"
    text = (place / "cli.md").read_text(encoding="utf-8")
    for name, page in (("cli.md", format_cli_page(text)), ("files.md", files_page()), ("python-api.md", python_page())):
        (place / name).write_text(page, encoding="utf-8")
    menu = (docs.parent / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    (docs / "llms.txt").write_text(index_page(menu, docs), encoding="utf-8")


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
    if sys.argv[2:3] == ["--names"]:
        folder = Path(sys.argv[3])
        folder.mkdir(parents=True, exist_ok=True)
        for name, page in name_pages().items():
            (folder / name).write_text(page, encoding="utf-8")
