"""Weights of classes, against scikit-learn's where that is there and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import grapheraser as ge
from grapheraser.engines import TrainingConfig
from grapheraser.engines.graph_checks import check_classes
from grapheraser.engines.reference import class_weights, objective_of
from grapheraser.errors import ParameterError
from grapheraser.graph import UNLABELLED
from grapheraser.models import PRESETS


def test_balanced_classes_weigh_alike_in_sum() -> None:
    labels = np.array([0, 0, 0, 2, UNLABELLED, 2, 0])
    found = class_weights("balanced", labels, 4)
    np.testing.assert_allclose(found, [6 / (2 * 4), 1, 6 / (2 * 2), 1])
    assert found.dtype == np.float32
    assert np.isclose(found[labels[labels >= 0]].mean(), 1)
    preprocessing = pytest.importorskip("sklearn.utils.class_weight")
    theirs = preprocessing.compute_class_weight(
        "balanced", classes=np.array([0, 2]), y=labels[labels >= 0]
    )
    np.testing.assert_allclose(found[[0, 2]], theirs)


def test_given_weights_are_those_of_their_classes() -> None:
    labels = np.zeros(3, dtype=np.int64)
    assert class_weights(((1, 4.0),), labels, 3).tolist() == [1, 4, 1]
    assert class_weights((2.0, 4.0, 8.0), labels, 3).tolist() == [2, 4, 8]


def test_the_loss_is_the_weighted_mean_over_labelled_nodes() -> None:
    scores = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    labels = np.array([0, 2, UNLABELLED, 2, 1])
    config = TrainingConfig(PRESETS["gcn"], class_weights=(2.0, 4.0, 8.0))
    found = objective_of(config, labels, 3)(scores, torch.from_numpy(labels))
    known = labels >= 0
    weights = np.array([2.0, 4.0, 8.0])[labels[known]]
    each = F.cross_entropy(
        scores[torch.from_numpy(known)], torch.from_numpy(labels[known]), reduction="none"
    )
    assert np.isclose(float(found), float((each.numpy() * weights).sum() / weights.sum()))


def test_weights_of_classes_that_the_graph_does_not_have_are_refused(small: ge.Graph) -> None:
    for weights, match in (({3: 1.0}, "classes below 3"), ([1.0, 1.0], "3 weights, one for each")):
        training = ge.Training(class_weights=weights)
        with pytest.raises(ParameterError, match=match):
            ge.GraphEraser(num_shards=2, epochs=1, engine="pyg", training=training).fit(small)
    check_classes(TrainingConfig(PRESETS["gcn"], class_weights=((2, 1.0),)), small)
