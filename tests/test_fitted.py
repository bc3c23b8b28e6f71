"""One fitted value: no reader sees two states, and no argument counts before the next fit."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.audit.version import Version


def test_predictions_during_a_request_are_of_one_state(
    small: ge.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole request comes between looking up the nodes and asking about them."""
    eraser = ge.GraphEraser(num_shards=3, epochs=3).fit(small)
    nodes, gone = small.ids[20:30], small.ids[:3]
    before = eraser.predict_proba(nodes)
    look_up = ge.Graph.positions
    started: list[bool] = []

    def interrupted(graph: ge.Graph, wanted: Any) -> Any:
        found = look_up(graph, wanted)
        if not started:
            started.append(True)
            request = threading.Thread(target=eraser.unlearn, args=(ge.Nodes(gone),))
            request.start()
            request.join()
        return found

    monkeypatch.setattr(ge.Graph, "positions", interrupted)
    during = eraser.predict_proba(nodes)
    assert len(eraser.receipts_) == 1
    assert during.tobytes() == before.tobytes()
    assert eraser.predict_proba(nodes).tobytes() != before.tobytes()


def test_another_device_counts_from_the_next_fit_on(small: ge.Graph) -> None:
    for device in ("cuda:0", "meta"):
        eraser = ge.GraphEraser(num_shards=3, epochs=1).fit(small)
        eraser.set_params(device=device)
        receipt = eraser.unlearn(ge.Nodes(small.train_nodes[:1]))
        assert receipt.device == "cpu"
        assert "gpu" not in receipt.versions
        assert eraser.verify().identical


def test_a_version_is_of_what_was_fitted_not_of_what_is_to_be(small: ge.Graph) -> None:
    eraser = ge.GraphEraser(num_shards=3, epochs=2, aggregation="routed").fit(small)
    before = Version.of(eraser).posteriors(small, small.ids[:5])
    eraser.set_params(seed=9, model="mlp")
    after = Version.of(eraser)
    assert after.seed == 0
    assert np.array_equal(after.posteriors(small, small.ids[:5]), before)


def test_cut_figures_go_with_the_ties_that_they_counted(small: ge.Graph) -> None:
    eraser = ge.GraphEraser(num_shards=3, epochs=1).fit(small)
    assert eraser.partition_.edge_cut > 0
    eraser.unlearn(ge.Edges([tuple(small.edges[0].tolist())]))
    assert eraser.partition_.quality is None
