"""Chen et al.'s attack: whoever sees both versions of a model guesses who was taken out.

An attack model is trained on the attacker's own runs, where the truth is known, and used on the
run under attack. Which of the attack models and features to use is decided on the attacker's runs
alone (by cross-validation), so that the figure reported for the run is no best-of-twenty.

An informed attacker uses more than Chen et al.'s does: the candidate's label, logarithms, and the
answers to the candidate's features alone.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from grapheraser.arrays import Bools, Floats
from grapheraser.audit.attacks.answers import FEATURES, INFORMED, Matrix, classical, log_odds
from grapheraser.audit.attacks.shadow import Observations
from grapheraser.audit.statistics import Rates, Result, auc, rates
from grapheraser.errors import MissingExtraError
from grapheraser.nodes.mitigations import Mitigation
from grapheraser.seeding import derive

ATTACK_MODELS = ("logistic regression", "decision tree", "random forest", "mlp")
_FOLDS = 2
_MIN_CLUSTERS = 8


@dataclass(frozen=True)
class MembershipResult(Result):
    """Success of the attack on one run."""

    # features, model: the combination chosen on the attacker's own runs.
    features: str
    model: str
    rates: Rates  # of that combination, on the run under attack
    classical_auc: float  # the same attacker, shown the earlier version alone
    # Share of the candidates about whom the second version made the attacker surer of the truth;
    # 0.5 is no news.
    degradation_count: float
    degradation_rate: float  # how much surer on average, -1 to 1; 0 is no news
    table: dict[str, dict[str, float]]  # AUC on the run, by features and attack model
    # Cross-validated AUC on the attacker's own runs, likewise.
    shadow_table: dict[str, dict[str, float]]

    @property
    def auc(self) -> float:
        return self.rates.auc.value


def attack(
    shadow: Observations,
    target: Observations,
    *,
    models: tuple[str, ...] = ATTACK_MODELS,
    mitigation: Mitigation | None = None,
    informed: bool = False,
    seed: int = 0,
) -> MembershipResult:
    """Train the attack on ``shadow`` and carry it out on ``target``.

    ``mitigation`` is applied to every posterior that the attacker sees; one who is ``informed``
    uses `INFORMED` too.
    """
    mitigation = mitigation or Mitigation()
    (own, own_first), (seen, seen_first) = (
        _shown(every, mitigation, informed) for every in (shadow, target)
    )
    table: dict[str, dict[str, float]] = {}
    shadow_table: dict[str, dict[str, float]] = {}
    beliefs: dict[tuple[str, str], Floats] = {}
    for name, train in own.items():
        test = seen[name]
        table[name], shadow_table[name] = {}, {}
        for model in models:
            belief = trained(model, train, shadow.member, test, seed)
            beliefs[name, model] = belief
            table[name][model] = auc(belief, target.member)
            shadow_table[name][model] = _cross_validated(model, train, shadow, seed)
    chosen = max(beliefs, key=lambda pair: shadow_table[pair[0]][pair[1]])
    before = trained(chosen[1], own_first, shadow.member, seen_first, seed)
    gain = np.where(target.member, 1, -1) * (beliefs[chosen] - before)
    # A handful of clusters says nothing about how much clusters differ.
    clusters = target.request if len(np.unique(target.request)) >= _MIN_CLUSTERS else None
    return MembershipResult(
        features=chosen[0],
        model=chosen[1],
        rates=rates(beliefs[chosen], target.member, clusters=clusters, seed=seed),
        classical_auc=auc(before, target.member),
        degradation_count=float((gain > 0).mean() + (gain == 0).mean() / 2),
        degradation_rate=float(gain.mean()),
        table=table,
        shadow_table=shadow_table,
    )


def _shown(
    seen: Observations, mitigation: Mitigation, informed: bool
) -> tuple[dict[str, Matrix], Matrix]:
    """Return what attack models see: of both versions, by features; of the earlier one alone."""
    posteriors = (seen.before, seen.after, seen.alone_before, seen.alone_after)
    before, after, *alone = (mitigation(p).astype(np.float64) for p in posteriors)
    looks = [(before, after), (alone[0], alone[1])]
    both = {name: feature(before, after) for name, feature in FEATURES.items()}
    first = classical(before)
    if informed:
        # They come first, so that they are chosen where the attacker's own runs show no difference.
        more = {
            name: np.hstack([feature(*look, seen.labels) for look in looks])
            for name, feature in INFORMED.items()
        }
        both = more | both
        sure = [log_odds(look[0], seen.labels)[:, None] for look in looks]
        first = np.hstack([first, *sure])
    return both, first


def _cross_validated(model: str, features: Matrix, shadow: Observations, seed: int) -> float:
    """Return the AUC on the attacker's own runs, each request judged by a model without it."""
    fold = shadow.request % min(_FOLDS, int(shadow.request.max()) + 1)
    if fold.max() == 0:
        return 0.5
    belief = np.zeros(len(shadow))
    for held_out in range(int(fold.max()) + 1):
        out = fold == held_out
        belief[out] = trained(model, features[~out], shadow.member[~out], features[out], seed)
    return float(
        np.mean([auc(belief[fold == f], shadow.member[fold == f]) for f in np.unique(fold)])
    )


def trained(model: str, train: Matrix, member: Bools, test: Matrix, seed: int) -> Floats:
    """Train a model, and return its belief that each test row is a member ``[n]``."""
    classifier = _classifier(model, derive(seed, "audit", model) % 2**32)
    # Matrices this small are ten times slower on two threads than on one.
    with warnings.catch_warnings(), _controller().limit(limits=1):
        # A small network that has not settled is still an attack model; its AUC tells.
        warnings.simplefilter("ignore")
        classifier.fit(train, member)
    belief: Floats = classifier.predict_proba(test)[:, 1]
    return belief


@cache
def _controller() -> Any:
    """The thread pools of this process; finding them takes longer than training a model."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


def _classifier(model: str, seed: int) -> Any:
    try:
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.neural_network import MLPClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.tree import DecisionTreeClassifier
    except ImportError:
        raise MissingExtraError.of("scikit-learn", "audit", "the membership attack") from None
    match model:
        case "logistic regression":
            learner: Any = LogisticRegression(max_iter=1000)
        case "decision tree":
            learner = DecisionTreeClassifier(min_samples_leaf=10, random_state=seed)
        case "random forest":
            learner = RandomForestClassifier(25, min_samples_leaf=3, random_state=seed)
        case _:
            learner = MLPClassifier(
                (16,), solver="lbfgs", alpha=0.01, max_iter=60, random_state=seed
            )
    return make_pipeline(StandardScaler(), learner)
