"""What all tests share: which run when, how Hypothesis draws examples, where public data may be.

``pytest`` runs everything. ``pytest --part short``, as in `make test`, leaves out what takes long
and draws fewer examples; ``--part rest`` runs what that leaves out, in full. Long is a test with
the marker ``long``, a fixture in `_LONG_FIXTURES` or a parameter in `_LONG_PARAMETERS`.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, is_hypothesis_test, settings

import grapheraser as ge
from tests import kept_kernels

# Before anything is imported that compiles.
_KERNELS = kept_kernels.choose_folder()

from grapheraser.kernels.compiled import cache_folders  # noqa: E402
from tests.strategies import HAS_TORCH, TwoHops, Weighing, small_graph  # noqa: E402

SHORT, REST = "short", "rest"

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


# What a test file imports at its head; what needs torch, as the parameter of a test.
_HEAD = re.compile(r"^(?:from|import) (\w+)", re.MULTILINE)
_NEEDS_TORCH = ("pyg", "custom", TwoHops, Weighing)


# A file of nothing but long tests; a short run does not even import it.
_ALL_LONG = re.compile(r"^(pytestmark = .*|    )pytest\.mark\.long\b", re.MULTILINE)
# What starts a browser, Ray or PostgreSQL, and many runs under attack.
_LONG_FIXTURES = {"browser", "ray_settings", "server", "attacked"}
_LONG_PARAMETERS = {"postgresql"}
# A short run draws so many times fewer examples, but at least so many.
_FEWER, _LEAST = 4, 2


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the command line choose a part of the suite."""
    text = "short: without long tests, with fewer examples; rest: what that leaves out"
    parser.addoption("--part", choices=[SHORT, REST], help=text)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Begin with what any checkout has compiled."""
    if own := _own_kernels(session):
        kept_kernels.draw(*own)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep for all checkouts what this one has compiled."""
    if own := _own_kernels(session):
        kept_kernels.add(*own)


def _own_kernels(session: pytest.Session) -> tuple[Path, Path] | None:
    """The folder of all checkouts and that of this one; None in a worker of pytest-xdist."""
    if _KERNELS is None or hasattr(session.config, "workerinput"):
        return None
    return _KERNELS, next(cache_folders(create=True))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out a test file whose head imports a package that is not there, as in `make core`.

    A short run also leaves out files that are long as a whole.
    """
    if not collection_path.match("test_*.py"):
        return None
    text = collection_path.read_text()
    if config.option.part == SHORT and _ALL_LONG.search(text):
        return True
    needed = set(_HEAD.findall(text))
    return any(find_spec(package) is None for package in needed) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the part that is asked for; skip what needs torch where it is not installed."""
    for item in items:
        if _is_long(item):
            item.add_marker("long")
    kept = set(part_of(items, config.option.part))
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]
    if config.option.part == SHORT:
        _draw_fewer(items)
    if not HAS_TORCH:
        for item in items:
            if item.get_closest_marker("gnn") or any(v in _NEEDS_TORCH for v in _parameters(item)):
                item.add_marker(pytest.mark.skip(reason="needs the extra 'gnn'"))


def part_of(items: list[pytest.Item], part: str | None) -> list[pytest.Item]:
    """The tests of a part; all where none is named."""
    if part is None:
        return items
    short = [item for item in items if not item.get_closest_marker("long")]
    if part == SHORT:
        return short
    in_full = {item for item in short if few_examples(item) is None}
    return [item for item in items if item not in in_full]


def _is_long(item: pytest.Item) -> bool:
    names = _LONG_FIXTURES.intersection(getattr(item, "fixturenames", ()))
    return bool(names) or any(value in _LONG_PARAMETERS for value in _parameters(item))


def _parameters(item: pytest.Item) -> list[str | type]:
    """The parameters of a test that can be looked up."""
    given = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return [value for value in given if isinstance(value, str | type)]


def few_examples(item: pytest.Item) -> settings | None:
    """How a short run draws the examples of a test; None where it draws all, or there are none."""
    test: Any = getattr(item, "obj", None)
    if not is_hypothesis_test(test):
        return None
    full: settings = test._hypothesis_internal_use_settings
    few = max(_LEAST, full.max_examples // _FEWER)
    return settings(full, max_examples=few) if few < full.max_examples else None


def _draw_fewer(items: list[pytest.Item]) -> None:
    """Draw fewer examples in all tests of Hypothesis."""
    # A test with parameters is one function and many items.
    functions = (item for item in items if isinstance(item, pytest.Function))
    for test, chosen in {item.function: few_examples(item) for item in functions}.items():
        if chosen is not None:
            test._hypothesis_internal_use_settings = chosen


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
