"""Run every command of docs/start/questions.md and draw its pictures again.

    python scripts/draw_gallery.py FOLDER [docs/start/questions.md]

FOLDER receives the runs; those that are finished there are not run again. A picture is named
images/gallery/RUN/NAME, where NAME is that of `cosim report runs/RUN --pictures`.
"""

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "start" / "questions.md"


@dataclass(frozen=True)
class Answer:
    """A question, the arguments of `cosim` that answer it, the run's folder, its picture, and lines that it prints."""

    question: str
    arguments: tuple[str, ...]
    folder: str
    picture: Path
    lines: tuple[str, ...]


def read_answers(text: str) -> list[Answer]:
    """The sections of the page. Raises ValueError for one without a command with -o, or without a picture."""
    found = []
    for section in text.split("\n## ")[1:]:
        question, _, body = section.partition("\n")
        blocks = re.findall(r"(?:^    .*\n)+", body, re.MULTILINE)
        picture = re.search(r"^!\[[^]]+\]\(\.\./(images/gallery/[^)]+)\)", body, re.MULTILINE)
        words = tuple(shlex.split(blocks[0].replace("\\\n", " "))) if blocks else ()
        if picture is None or words[:1] != ("cosim",) or "-o" not in words:
            raise ValueError(f"{question}: needs a cosim command with -o and a picture below images/gallery")
        folder, lines = words[words.index("-o") + 1], [line.strip() for line in "".join(blocks[1:]).splitlines()]
        found.append(Answer(question, words[1:], folder, Path(picture[1]), tuple(lines)))
    return found


def cosim(*arguments: str, folder: Path) -> str:
    """What it prints. Raises CalledProcessError."""
    done = subprocess.run(
        [sys.executable, "-m", "cosim", *arguments], cwd=folder, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def answer(one: Answer, folder: Path) -> bytes:
    """Run its command where `models` is; its picture. Raises ValueError where it does not print the page's lines."""
    printed = cosim(*one.arguments, folder=folder)
    for line in one.lines:
        if line not in printed:
            raise ValueError(f"{one.question}: the page has {line!r}, the command printed\n{printed}")
    pictures = f"{one.folder}/pictures"
    cosim("report", one.folder, "--no-waveforms", "--pictures", pictures, folder=folder)
    return (folder / pictures / one.picture.name).read_bytes()


def main() -> None:
    """Draw all pictures."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "models").exists():
        (folder / "models").symlink_to(ROOT / "models")
    for one in read_answers(PAGE.read_text(encoding="utf-8")):
        print(one.question, flush=True)
        target = ROOT / "docs" / one.picture
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(answer(one, folder))


if __name__ == "__main__":
    main()
