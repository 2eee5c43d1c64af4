"""What continuous integration runs: the suite, with the foundry kits that lie beside the checkout."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / ".ci" / "run"


@pytest.mark.skipif(not SCRIPT.exists(), reason="no checkout")
@pytest.mark.parametrize(
    ("kits", "given", "wanted"),
    [
        (True, None, "{here}/shared/pdk"),
        (True, "/other", "/other"),
        (True, "", ""),
        (False, None, "unset"),
    ],
)
def test_kits(tmp_path, kits, given, wanted):
    """`make` is one that says what it got."""
    checkout, tools = tmp_path / "checkout", tmp_path / "tools"
    (checkout / ".ci").mkdir(parents=True)
    shutil.copy(SCRIPT, checkout / ".ci")
    tools.mkdir()
    (tools / "make").write_text('#!/bin/sh\necho "$PWD $* ${PDK_ROOT-unset}"\n')
    (tools / "make").chmod(0o755)
    if kits:
        (tmp_path / "shared" / "pdk").mkdir(parents=True)
    environment = {name: value for name, value in os.environ.items() if name != "PDK_ROOT"}
    environment |= {"PATH": f"{tools}:{os.environ['PATH']}"} | ({} if given is None else {"PDK_ROOT": given})
    done = subprocess.run(["bash", checkout / ".ci" / "run"], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout) == (0, f"{checkout} test {wanted.format(here=tmp_path)}\n")
