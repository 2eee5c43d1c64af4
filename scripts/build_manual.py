"""Build the manual in site/: the pages of docs, and of every folder of the package a page with its public names.

    python scripts/build_manual.py

The site has all that it needs: it is read from disk, and its search works there.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from write_reference import name_pages

ROOT = Path(__file__).resolve().parents[1]
SOURCE, SITE = ROOT / "build" / "manual", ROOT / "site"
FROM_DISK = "worker_from_disk.js"
ELSEWHERE = "https://unpkg.com/iframe-worker/shim"  # what the theme would load for a search from disk


def main() -> int:
    """Build the site; returns the exit status of its generator."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.copytree(ROOT / "docs", SOURCE / "docs")
    names = SOURCE / "docs" / "reference" / "names"
    names.mkdir()
    for name, page in name_pages().items():
        (names / name).write_text(page, encoding="utf-8")
    shutil.copy(ROOT / "mkdocs.yml", SOURCE)
    program = shutil.which("zensical", path=str(Path(sys.executable).parent)) or "zensical"
    status = subprocess.run([program, "build", "--strict", "--clean"], cwd=SOURCE, check=False).returncode
    if status == 0:
        shutil.rmtree(SITE, ignore_errors=True)
        shutil.move(SOURCE / "site", SITE)
        shutil.copy(ROOT / "scripts" / FROM_DISK, SITE / "assets" / FROM_DISK)
        for page in SITE.rglob("*.html"):
            up = "../" * (len(page.relative_to(SITE).parts) - 1)
            text = page.read_text(encoding="utf-8")
            page.write_text(text.replace(ELSEWHERE, f"{up}assets/{FROM_DISK}"), encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
