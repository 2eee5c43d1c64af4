"""Execute every notebook of a folder and write the executed copies, into the same folder where it is named twice.

Progress on stderr is left out of the copies.
"""

import argparse
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError


def run_notebook(source: Path, target: Path) -> None:
    """Execute one notebook in its own folder; the copy is written also when a cell fails, with the traceback in it."""
    notebook = nbformat.read(source, as_version=4)
    client = NotebookClient(notebook, timeout=1800, resources={"metadata": {"path": str(source.parent)}})
    try:
        client.execute()
    finally:
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
                cell.metadata.pop("execution", None)  # times
        nbformat.write(notebook, target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", type=Path)
    parser.add_argument("targets", type=Path)
    arguments = parser.parse_args()
    arguments.targets.mkdir(parents=True, exist_ok=True)
    failed = []
    for source in sorted(arguments.sources.glob("*.ipynb")):
        print(source, flush=True)
        try:
            run_notebook(source, arguments.targets / source.name)
        except CellExecutionError as error:
            print(error, file=sys.stderr)
            failed.append(source.name)
    if failed:
        sys.exit(f"{len(failed)} notebook(s) failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
