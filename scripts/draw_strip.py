"""Draw the strip of pictures at the top of README.md: one network on its way from weights to chips.

    python scripts/draw_strip.py FOLDER docs/images/strip.png

FOLDER receives the runs, which go on where they stopped; the mask needs the kit gf180mcu, and the picture Chromium.
"""

import shutil
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

from PIL import Image

NETWORK = Path(__file__).resolve().parents[1] / "models" / "trained" / "digits_robust_d8.pt"
RUNS = (  # folder, arguments
    ("net", ("compile",)),
    ("compared", ("compare", "--samples", "4")),
    ("chips", ("montecarlo", "--chips", "1000")),
    ("mask", ("layout", "--technology", "gf180mcu")),
)
PANELS = (  # what is written under it, picture
    ("a trained network", "net/pictures/compile-the-network.svg"),
    ("its unit: nine transistors", "net/pictures/compile-cells-3.svg"),
    ("a digit on 712 transistors", "compared/pictures/compare-one-inference-and-all-decisions.png"),
    ("1,000 chips that vary", "chips/pictures/montecarlo-the-chips.svg"),
    ("its mask in gf180mcu", "mask/layout.png"),
)
WIDTH, HEIGHT = 1600, 330  # pixels of the page; the picture has twice as many
PAGE = """<style>body {{ margin: 0; padding: 8px; display: flex; gap: 14px; background: white; font: 17px sans-serif; }}
figure {{ margin: 0; flex: 1; text-align: center; }}
img {{ width: 100%; height: 280px; object-fit: contain; }}</style>{}"""


def main(folder: Path, picture: Path) -> None:
    """Run the verbs in the folder and write the picture. Raises CalledProcessError."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (verb, *options) in RUNS:
        cosim(verb, str(NETWORK), *options, "-o", str(folder / name))
        if verb != "layout":
            cosim("report", str(folder / name), "--pictures", str(folder / name / "pictures"))
    page = folder / "strip.html"
    page.write_text(PAGE.format("".join(_panel(text, folder / name) for text, name in PANELS)), encoding="utf-8")
    program = shutil.which("chromium") or shutil.which("google-chrome") or "chromium"
    drawn = (f"--screenshot={picture.resolve()}", f"--window-size={WIDTH},{HEIGHT}", "--force-device-scale-factor=1.5")
    subprocess.run([program, "--headless", "--no-sandbox", "--disable-gpu", *drawn, page.as_uri()], check=True)
    Image.open(picture).convert("P", palette=Image.Palette.ADAPTIVE, colors=128).save(picture, optimize=True)


def cosim(*arguments: str) -> None:
    """Run a verb."""
    subprocess.run([sys.executable, "-m", "cosim", *arguments], check=True)


def _panel(text: str, path: Path) -> str:
    kind = "svg+xml" if path.suffix == ".svg" else "png"
    source = b64encode(path.read_bytes()).decode()
    return f'<figure><img src="data:image/{kind};base64,{source}"><figcaption>{text}</figcaption></figure>'


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
