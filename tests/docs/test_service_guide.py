"""Every command of the guide to the service runs, in the order in which it is read."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "service-guide.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
# What is said by whom, in the order of the page.
EXPECTED = (
    r'"items": ?3',
    r"handed out  handed-out/receipt-\w+-0001\.json",
    r"state       completed",
    r"receipt: valid",
    r'"model_version": ?"1"',
    r"node 12 is not in the graph",
    r"bit for bit|identical|verified",
)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="the guide uses curl")
def test_the_commands_of_the_guide_lead_to_a_forgotten_person(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    blocks = BLOCK.findall(PAGE.read_text())
    assert len(blocks) >= 10
    script = "\n".join(
        ["set -euo pipefail", "trap 'kill $(jobs -p) 2>/dev/null || :' EXIT", *blocks]
    )
    settings = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GRAPHERASER_KEYS": str(tmp_path / "keys"),
        "GRAPHERASER_SERVICE_PORT": str(port),
        "GRAPHERASER_SERVICE_WINDOW": "0",
        "GRAPHERASER_URL": f"http://127.0.0.1:{port}",
    }
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    at = 0
    for expected in EXPECTED:
        found = re.compile(expected).search(done.stdout, at)
        assert found is not None, (expected, done.stdout[at:])
        at = found.end()
    assert "Traceback" not in done.stderr
