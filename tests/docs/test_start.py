"""The page for newcomers says how to install; `tools.trial` types in the rest of it."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "start.md"


def test_the_page_installs_the_wheel_and_no_torch() -> None:
    install = PAGE.read_text().split("## Install")[1].split("## Fit")[0]
    commands = re.findall(r"^pip install .*", install, re.M)
    assert commands == ["pip install ./grapheraser-*.whl cryptography"]
