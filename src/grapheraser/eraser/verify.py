"""The proof: train from the remaining data alone, and compare every tensor."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.eraser.settings import made_with, trained_elsewhere
from grapheraser.eraser.snapshot import Snapshot, document
from grapheraser.eraser.state import State, claim_of, fit_state
from grapheraser.errors import CorruptRunError, VerificationError
from grapheraser.graph.encoding import filled
from grapheraser.graph.proof.register import Register, RegisterPage
from grapheraser.partition.placing import partition_afresh
from grapheraser.progress import stage
from grapheraser.receipts import NOT_EXACT, Receipt, check_chain, digest_of
from grapheraser.receipts.checking import Signatures, check_signatures
from grapheraser.receipts.claim import same_claim
from grapheraser.receipts.envelope import PAYLOAD, check_signed
from grapheraser.receipts.keys import PublicKey
from grapheraser.store.keys import current_signer, known_keys
from grapheraser.store.manifest import is_signed

IDENTICAL, DIFFERENT, INCOMPARABLE = "bit-identical", "NOT identical", "not comparable here"
_MAX_SAID = 3  # differences in an error
# What the parts of the state's document are called.
_WORDS = {
    "shards": "weights of the shards",
    "seeds": "seeds of the shards",
    "described": "description",
    "nonce": "commitments",
}


@dataclass(frozen=True)
class Verification:
    """Result of a replay from the remaining data.

    Attributes:
        identical: whether every tensor, and what the receipts say, is what it should be; whoever
            signed them.
        verdict: ``"bit-identical"``, ``"NOT identical"``, or ``"not comparable here"``: files and
            receipts are as they should be, and the replay proves nothing; see ``elsewhere``.
        tensors: how many tensors were compared.
        values: how many numbers that is.
        receipts: how many receipts were checked.
        signatures: what checking their signatures found.
        differences: what is not as it should be, in words.
        notes: circumstances that weaken or explain the result.
        seconds: how long the replay took.
        elsewhere: what the shards were trained with, and what there is here, where the replay
            can't be compared for that reason; else None.
    """

    identical: bool
    tensors: int
    values: int
    receipts: int
    signatures: Signatures
    differences: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: float
    elsewhere: str | None = None

    @property
    def verdict(self) -> str:
        if self.identical:
            return IDENTICAL
        return DIFFERENT if self.differences else INCOMPARABLE

    @property
    def passed(self) -> bool:
        """True where all bits agree and no signature is wrong; see `Signatures.verdict`."""
        return self.identical and not self.signatures.wrong

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "signatures": self.signatures.to_dict(),
            "verdict": self.verdict,
            "differences": list(self.differences),
            "notes": list(self.notes),
        }


def verify(snapshot: Snapshot, keys: Sequence[PublicKey] | None = None) -> Verification:
    """S(G, P, recorded seeds) afresh beside the state at hand; see `GraphEraser.verify`."""
    started = time.perf_counter()
    stage("checking the receipts")
    differences = [*wrong_parts(snapshot), *_wrong_receipts(snapshot)]
    _, differing, elsewhere = _replay(snapshot)
    found = snapshot.state.tensors()
    if elsewhere is None:
        differences += differing
    return Verification(
        identical=not differences and not differing,
        tensors=len(found),
        values=sum(array.size for array in found.values()),
        receipts=len(snapshot.receipts),
        signatures=_signatures(snapshot, keys),
        differences=tuple(differences),
        notes=tuple(_notes(snapshot)),
        seconds=time.perf_counter() - started,
        elsewhere=elsewhere,
    )


def _replay(snapshot: Snapshot) -> tuple[State, tuple[str, ...], str | None]:
    """Fit afresh; return the state, how it differs, and why it may where the machine is another."""
    state = snapshot.state
    fresh = fit_state(snapshot.settings, state.graph, state.partition, state.seeds)
    stage("comparing bit for bit")
    differing = _compare(state.tensors(), fresh.tensors())
    moved = trained_elsewhere(snapshot.settings, snapshot.seals.versions) if differing else None
    return fresh, differing, moved


def _compare(found: dict[str, NDArray[Any]], expected: dict[str, NDArray[Any]]) -> tuple[str, ...]:
    """List every difference between two sets of named tensors; equal means equal bytes."""
    differences = [f"{name}: missing" for name in expected.keys() - found.keys()]
    differences += [f"{name}: should not be there" for name in found.keys() - expected.keys()]
    for name in found.keys() & expected.keys():
        a, b = found[name], expected[name]
        if a.dtype != b.dtype or a.shape != b.shape:
            differences.append(
                f"{name}: {a.dtype}{list(a.shape)} instead of {b.dtype}{list(b.shape)}"
            )
        elif a.tobytes() != b.tobytes():
            differs = int(np.count_nonzero(a != b))
            differences.append(f"{name}: {differs} of {a.size} values differ")
    return tuple(sorted(differences))


def check_loaded(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot to change; refuse one that is not what its last receipt describes.

    Every byte was held to the manifest when it was read. Where a key that is known here has signed
    the manifest, no more than the ends has to be compared. Else whoever wrote the folder may have
    made weights, digests and receipts that fit each other: all is digested again, and before
    anything is signed that follows from it, replayed.
    """
    if snapshot.loaded is None:
        return snapshot
    keys, state = known_keys(), snapshot.state
    wrong = [*_wrong_end(snapshot, keys)]
    if not wrong and not is_signed(snapshot.loaded, keys):
        wrong = [*wrong_parts(snapshot)]
        claims = claim_of(snapshot.settings, state)["statement"] != NOT_EXACT
        if not wrong and claims and current_signer() is not None:
            stage("replaying what no key here has signed")
            fresh, differing, moved = _replay(snapshot)
            wrong = [] if moved else [f"replayed, {said}" for said in differing]
            state = fresh if moved else state
    if wrong:
        said = "; ".join(wrong[:_MAX_SAID])
        raise CorruptRunError(
            f"the run is not in the state that its last receipt describes ({said}); "
            "nothing was changed, and nothing can be claimed of what follows from it.",
            hint="restore it from a backup; `grapheraser verify RUN` says more.",
        )
    return replace(snapshot, state=state, loaded=None)


def _wrong_end(snapshot: Snapshot, keys: Sequence[PublicKey]) -> Iterator[str]:
    """Yield what the last receipt contradicts, in time that does not grow with the run."""
    receipts, ends = snapshot.receipts, snapshot.ends
    state, settings = digest_of(dict(snapshot.document)), digest_of(snapshot.configuration)
    if (ends.state, ends.configuration) != (state, settings):
        yield "its end is that of another state"
    if len(receipts) != ends.receipts:
        yield "it has another number of receipts than it says"
    elif receipts:
        last = receipts[-1]
        if (last.digest, last.after, last.run) != (ends.head, state, ends.run):
            yield "the last receipt led to another state"
        known = {key.id: key for key in keys}
        for one in (one for one in last.signatures if one.key in known):
            try:
                check_signed(PAYLOAD, last.payload, [one], known[one.key])
            except VerificationError:
                yield "the signature of the last receipt does not fit"
    elif ends.fitted != state:
        yield "it was fitted in another state"


def wrong_parts(snapshot: Snapshot) -> Iterator[str]:
    """The parts of the state's document that are not what the state at hand consists of."""
    graph, partition = snapshot.state.graph, snapshot.state.partition
    if partition.data_free:
        stage("partitioning afresh")
        labels = partition_afresh(snapshot.settings.partitioner, graph, partition)
        if not np.array_equal(labels, partition.labels):
            yield "partition: a fresh one gives other shards"
    # A copy has nothing cached: its fingerprint is worked out from the data.
    if graph.with_fields().fingerprint != graph.fingerprint:
        yield "graph: its fingerprint does not follow from its data"
    rule = graph.encoding
    if rule and rule.means and len(filled(rule, graph.x, graph.means)[1]):
        yield "graph: gaps are not filled with the means of what is left"
    register = snapshot.seals.register
    pages = [RegisterPage(page.entries, page.digits) for page in register.pages]
    if Register.restored(register.key, pages).root != register.root:
        yield "register: its root does not follow from its slots"
    if not register.is_of(graph.ids):
        yield "register: not the nodes of the graph"
    ensemble = snapshot.state.ensemble
    # So it is with shard models, whose pages remember digests.
    state = replace(snapshot.state, ensemble=replace(ensemble, shards=dict(ensemble.shards)))
    expected = document(state, snapshot.configuration, snapshot.seals)
    found = snapshot.document
    unsealed = _unsealed(snapshot, expected)
    expected["described"] = {
        name: said for name, said in expected["described"].items() if name not in unsealed
    }
    for name in sorted({*expected, *found}):
        if found.get(name) != expected.get(name):
            yield f"{_WORDS.get(name, name)}: not what the last change left"


def _unsealed(snapshot: Snapshot, expected: Mapping[str, Any]) -> list[str]:
    """Names of what a state that an earlier version has left does not say of itself."""
    said = snapshot.document.get("described")
    return sorted(expected["described"].keys() - said.keys()) if isinstance(said, dict) else []


def _wrong_receipts(snapshot: Snapshot) -> Iterator[str]:
    """Yield whatever in the receipts contradicts the run, in words."""
    receipts, ends = snapshot.receipts, snapshot.ends
    if ends.configuration != digest_of(snapshot.configuration):
        yield "configuration: not the settings that the run was fitted with"
    state = digest_of(dict(snapshot.document))
    if ends.state != state:
        yield "receipts: the run's current state is not the one that they led to"
    try:
        check_chain(receipts, state=state, ends=ends)
    except (VerificationError, CorruptRunError) as error:
        yield f"receipts: {error.message}" if isinstance(error, CorruptRunError) else error.message
        return  # what a receipt says that does not belong here is of no interest
    if receipts:
        yield from _wrong_circumstances(snapshot, receipts[-1])


def _wrong_circumstances(snapshot: Snapshot, last: Receipt) -> Iterator[str]:
    """Yield what the last receipt says of the run besides its state, where that is not so."""
    settings, claim = snapshot.settings, claim_of(snapshot.settings, snapshot.state)
    names = settings.aggregation_names(snapshot.state.graph)
    said: dict[str, tuple[Any, Any]] = {
        "register": (last.register_after, snapshot.seals.register.root),
        "configuration": (last.configuration, digest_of(snapshot.configuration)),
        "seed": (last.seed, str(settings.seed)),
        "engine": (last.engine, settings.engine.name),
        "exactness": (same_claim(last.exactness, claim), True),
        "aggregation": ({name: last.aggregation.get(name) for name in names}, names),
    }
    for name, (found, expected) in said.items():
        if found != expected:
            yield f"receipts: the last one has another {name} than the run"


def _signatures(snapshot: Snapshot, keys: Sequence[PublicKey] | None) -> Signatures:
    """The signatures under the receipts, checked with these keys, or with those of this machine."""
    try:
        receipts = list(snapshot.receipts)
    except (VerificationError, CorruptRunError) as error:
        return Signatures(wrong=(error.message,))
    known = known_keys() if keys is None else keys
    found = check_signatures(receipts, snapshot.ends.checkpoint, known, required=keys is not None)
    if snapshot.loaded is not None and is_signed(snapshot.loaded, known) is False:
        wrong = (*found.wrong, "the manifest is not what its key has signed")
        found = replace(found, wrong=wrong)
    return found


def _notes(snapshot: Snapshot) -> Iterator[str]:
    described = document(snapshot.state, snapshot.configuration, snapshot.seals)
    if unsealed := _unsealed(snapshot, described):
        yield (
            f"an earlier version has left this state, which does not seal {', '.join(unsealed)}: "
            "the next change does"
        )
    if not snapshot.receipts:
        return
    if snapshot.receipts[-1].versions != made_with(snapshot.settings):
        yield "the last receipt was written under other library versions"
    said, now = snapshot.receipts[-1].statement, claim_of(snapshot.settings, snapshot.state)
    if said != now["statement"]:
        yield f"the last receipt says '{said}'; today it would say '{now['statement']}'"
