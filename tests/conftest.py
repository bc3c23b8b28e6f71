"""What all tests share: how Hypothesis looks for failures, and where public data may be."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

import grapheraser as ge
from tests.strategies import small_graph

# The same examples every time, so that a red run is red for a reason in the change.
settings.register_profile(
    "suite",
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("suite")


@pytest.fixture(scope="session", autouse=True)
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of signing keys that no test shares with the user."""
    folder = tmp_path_factory.mktemp("keys")
    before = os.environ.get("GRAPHERASER_KEYS")
    os.environ["GRAPHERASER_KEYS"] = str(folder)
    yield folder
    if before is None:
        del os.environ["GRAPHERASER_KEYS"]
    else:
        os.environ["GRAPHERASER_KEYS"] = before


@pytest.fixture(scope="session")
def ray_settings() -> Iterator[None]:
    """Ray, quiet, local, and with a token of its own instead of one in the home folder.

    For the whole session: Ray reads the token once in a process.
    """
    pytest.importorskip("ray", reason="needs the extra 'ray'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "")  # so that what Ray sets it to goes with the fixture
        patch.delenv("RAY_AUTH_MODE")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_niceness", "0")  # or a busy machine leaves them no time
        patch.delenv("RAY_ADDRESS", raising=False)
        yield


@pytest.fixture(scope="session")
def demo() -> ge.Graph:
    return ge.load_dataset("demo")


@pytest.fixture(scope="session")
def small() -> ge.Graph:
    """A fixed graph of 40 nodes, 30 of them for training."""
    return small_graph()


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of public data sets; tests that ask for it carry the marker ``data``."""
    folder = os.environ.get("GRAPHERASER_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("GRAPHERASER_DATA does not name a folder with the public data sets")
    return Path(folder)
