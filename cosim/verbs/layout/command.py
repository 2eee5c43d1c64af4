"""cosim layout: a trained network as a checked mask."""

from dataclasses import dataclass
from pathlib import Path

import click

from cosim.cli.options import collecting, network_argument, output_option
from cosim.cli.progress import say
from cosim.cli.settings import RunVerb
from cosim.verbs.common import Compiling, check_outputs, compile_options, load_design, take_folder


@dataclass(frozen=True)
class LayoutOptions:
    """Options of the drawing: `check` it with the kit's decks, add `fill`, keep it gzipped as well."""

    check: bool
    fill: bool
    gzip: bool


@click.command(cls=RunVerb)
@network_argument
@output_option("layout")
@click.option("--check", is_flag=True, help="Run the kit's DRC and LVS in the klayout application.")
@click.option("--fill", is_flag=True, help="Add squares of metal up to the foundry's density.")
@click.option("--gzip", is_flag=True, help="Write layout.gds.gz, too.")
@compile_options
@collecting(drawing=LayoutOptions)
def command(*, network_file: Path, output: Path, drawing: LayoutOptions, compiling: Compiling) -> None:
    """Draw NETWORK as a macro: GDS, LVS netlist, pins, areas, capacitance of wires.

    The folder receives layout.gds, lvs.sp (the netlist that is simulated, a line a unit), pins.csv in order from the
    left, area.csv by block, wires.csv, which compare --extracted reads, positions.csv, which montecarlo --gradient
    reads, couplings.csv, resistance.csv, layout.json and pictures. Every drawn unit is held against its line of lvs.sp.
    Where the kit's decks run, checks.json and violations.csv have what they find, with coordinates; exit status 1 where
    DRC or LVS fails. Density is printed and not counted: fill is left to the chip that the macro goes on, where --fill
    does not add it.
    """
    from cosim.layout.checks import Checked, find_checker
    from cosim.layout.chip import drawing_of
    from cosim.layout.gds import geometry
    from cosim.layout.produce import check_layout, make_layout
    from cosim.technology.catalog import load_technology

    check_outputs("layout", output)
    technology = load_technology(compiling.technology, compiling.pdk_root)
    rules = drawing_of(technology)
    geometry()  # said before the work
    checker = find_checker(technology, rules) if drawing.check else None
    design, _ = load_design(network_file, compiling)
    take_folder("layout", output)
    made = make_layout(design, output, packed=drawing.gzip, filled=drawing.fill)
    x1, y1, x2, y2 = made.chip.box
    click.echo(f"{network_file} on {technology.name}")
    click.echo(f"  size              {(x2 - x1) / 1000:.1f} x {(y2 - y1) / 1000:.1f} um")
    click.echo(f"  area              {made.chip.area * 1e12:.0f} um2, {made.ratio:.2f} times the gates")
    click.echo(f"  units             {made.units.summary}")
    worst = made.resistance[0]
    click.echo(f"  resistance        at most {100 * worst.worst:.2g} % of U_T or of a frame, on {worst.net}")
    if made.filled is not None:
        for layer, share in made.filled.after.items():
            click.echo(f"  {layer:<17} {made.filled.before[layer]:.1%} of the area, {share:.1%} with fill")
    for cell, reason in made.without_picture.items():
        click.echo(f"  no picture        of {cell} alone: {reason}")
    passed = made.units.passed
    if checker is not None:

        def finished(one: Checked) -> None:
            say(f"{one.check}: {one.summary}")

        found = check_layout(output, checker, finished)
        for one in found:
            click.echo(f"  {one.check:<17} {one.summary}")
            passed &= one.passed or one.check == "density"
    click.echo(f"  written           {output}")
    if not passed:
        raise SystemExit(1)
