"""Findings: measurements are no proofs, and leaks are named."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapheraser.audit.findings import findings


def _figure(low: float, value: float, high: float) -> dict[str, Any]:
    return {"auc": {"low": low, "value": value, "high": high}}


_FIGURES = st.tuples(*[st.floats(0, 1)] * 3).map(lambda ends: _figure(*sorted(ends)))


@given(_FIGURES, _FIGURES, _FIGURES)
def test_what_is_measured_is_never_a_failed_proof(
    before: dict[str, Any], after: dict[str, Any], other: dict[str, Any]
) -> None:
    sections: dict[str, dict[str, Any]] = {
        "edges": {"before": before, "after": after, "drop": other},
        "forgetting": {
            "runs": 8, "forgotten": 3, "before": before, "after": {"kept": after, "recut": other},
        },
    }  # fmt: skip
    assert {finding.level for finding in findings(sections)} <= {"leak", "noted"}


@pytest.mark.parametrize(("kept", "level"), [(0.2, "noted"), (0.5, "noted"), (0.8, "leak")])
def test_only_a_model_that_tells_more_than_starting_over_leaks(kept: float, level: str) -> None:
    after = {"kept": _figure(kept - 0.1, kept, kept + 0.1), "recut": _figure(0.4, 0.5, 0.6)}
    section = {"runs": 8, "forgotten": 3, "before": _figure(0.6, 0.7, 0.8), "after": after}
    assert findings({"forgetting": section})[0].level == level
