"""From two states to the receipt of the change between them, signed and entered in the log."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.blocks import same_blocks
from grapheraser.canonical import BY_BLOCK
from grapheraser.eraser.settings import Settings, made_with
from grapheraser.eraser.snapshot import NO_NODES, Snapshot, document
from grapheraser.eraser.state import State, claim_of, seed_of
from grapheraser.graph.proof.register import Register
from grapheraser.kinds import CHANGES, GRAPH_NAMES, items_of, node_forgotten
from grapheraser.partition.halo import task_graph
from grapheraser.receipts import Details, Ends, Part, Receipt, Receipts, ShardRecord, digest_of
from grapheraser.receipts.part import About, Place, part_leaf
from grapheraser.receipts.register import Opening, slot_of
from grapheraser.receipts.tree import inclusion_proofs, root_of
from grapheraser.store import shard_digest
from grapheraser.store.keys import current_signer

_NONCE_SIZE = 32
_FIRST = 4096


@dataclass(frozen=True, eq=False)
class Work:
    """A change as it was carried out: what it named, and what it took."""

    action: str  # "unlearn", "update", "insert" or "reshard"
    abouts: Sequence[About]  # what was asked, in parts that can be shown one by one; ids as text
    # How many nodes, edges, feature rows and labels were named, 0 where nothing is said; and what
    # else there is to count.
    counts: Mapping[str, int]
    shards: Sequence[int]  # ids of the shards that were retrained or emptied
    timings: Mapping[str, float]  # seconds by step
    started: float  # when the work began, on the clock of `time.perf_counter`
    # gone, new: ids of the nodes that left the graph, and of those that came.
    gone: NDArray[np.int64] = field(default_factory=lambda: NO_NODES)
    new: NDArray[np.int64] = field(default_factory=lambda: NO_NODES)
    context: int = 0  # how many of the nodes were in a shard without a label to learn from
    untrained: int = 0  # how much of what was named no shard was trained on
    notes: Sequence[str] = ()  # what else the operator should know
    skipped: Sequence[Any] = ()  # requests for what was not there


def parts_of(named: Mapping[str, Sequence[Any]]) -> Iterator[About]:
    """Yield the parts of a change, from all that `Removal.named` or `Edit.named` names by kind."""
    for kind, ids in items_of(named):
        yield kind.about(ids)
    for kind in CHANGES.values():
        for row in named.get(kind.name, ()):
            if isinstance(row, dict):
                more = {name: value for name, value in row.items() if name != "id"}
                yield kind.about([row["id"]], **more)
            elif kind.ends > 1:
                yield kind.about(row[: kind.ends], values=list(row[kind.ends :]))
            else:
                yield kind.about(row[:1], label=row[1])


def record(now: Snapshot, after: State, work: Work) -> Snapshot:
    """Return the snapshot after a change, whose last receipt is that of the change."""
    sealing = time.perf_counter()
    signer, settings = current_signer(), now.settings
    seals = now.seals.after(work.gone, work.new, made_with(settings, now.seals.versions))
    described = document(after, now.configuration, seals)
    request = _Asked.fresh(work.abouts)
    receipt = Receipt(
        action=work.action,
        sequence=len(now.receipts) + 1,
        previous=now.ends.head,
        run=now.ends.run,
        request=root_of(request.leaves).hex(),
        requests=len(request.leaves),
        counts={**dict.fromkeys(GRAPH_NAMES, 0), **work.counts},
        before=now.ends.state,
        after=digest_of(described),
        register_before=now.seals.register.root,
        register_after=seals.register.root,
        # A user's own aggregator need not have any notes.
        aggregation={
            **settings.aggregation_names(after.graph),
            "notes": [*getattr(after.aggregator, "notes", ()), *work.notes],
        },
        configuration=described["configuration"],
        seed=str(settings.seed),
        engine=settings.engine.name,
        device=settings.device,
        versions=seals.versions,
        exactness=claim_of(settings, after),
        completed_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    if signer is not None:
        receipt = receipt.signed_by(signer, signer.id)
    ends = now.ends.then(receipt, signer)
    opened = _Opened(receipt, request, now.ends, ends, now.seals.register, seals.register)
    details = Details(
        shards=tuple(_shard_record(now, after, shard) for shard in sorted(work.shards)),
        relearned=_relearned(now.state, after),
        context=work.context,
        untrained=work.untrained,
        skipped=tuple(work.skipped),
        notes=tuple(_single_rows(settings, after, work.shards)),
        changed=_moved(after),
    )
    done = time.perf_counter()  # all of it is part of the request
    timings = {**work.timings, "receipt": done - sealing, "total": done - work.started}
    rounded = {name: round(seconds, 6) for name, seconds in timings.items()}
    details = replace(details, timings=rounded)
    receipts = Receipts.of(now.receipts).then(receipt.telling(details, opened))
    made = replace(now, state=after, receipts=receipts, ends=ends, seals=seals)
    return replace(made, document=described, loaded=None)


@dataclass(frozen=True)
class _Asked:
    """The parts of a request in the order of their leaves, which tells nothing of them."""

    abouts: tuple[About, ...]
    nonces: tuple[bytes, ...]
    leaves: tuple[bytes, ...]

    @classmethod
    def fresh(cls, abouts: Sequence[About]) -> _Asked:
        nonces = [secrets.token_bytes(_NONCE_SIZE) for _ in abouts]
        leaves = map(part_leaf, nonces, abouts)
        made = sorted(zip(leaves, nonces, abouts, strict=True), key=lambda part: part[0])
        return cls(*(tuple(column) for column in list(zip(*made, strict=True))[::-1]))


@dataclass(frozen=True, eq=False)
class _Opened:
    """Parts that only the receipt of a change can show, as long as somebody has it."""

    receipt: Receipt
    asked: _Asked
    before: Ends
    after: Ends
    register_before: Register
    register_after: Register

    def __call__(self) -> tuple[Part, ...]:
        log = Place(self.before.receipts, self.after.receipts, self.before.tree.roots[::-1])
        asked, size = self.asked, len(self.asked.leaves)
        columns = zip(asked.abouts, asked.nonces, inclusion_proofs(asked.leaves), strict=True)
        return tuple(
            Part(
                receipt=self.receipt,
                about=about,
                nonce=nonce,
                place=Place(index, size, tuple(proof)),
                log=log,
                checkpoint=self.after.checkpoint,
                opening=self._opening(node_forgotten(about)),
            )
            for index, (about, nonce, proof) in enumerate(columns)
        )

    def _opening(self, node: int | None) -> Opening | None:
        if node is None:
            return None
        slot = slot_of(self.register_before.key, node)
        before, after = self.register_before, self.register_after
        return Opening(node, slot, before.nonce(node), before.proof(slot), after.proof(slot))


def _shard_record(before: Snapshot, after: State, shard: int) -> ShardRecord:
    old, new = before.state.shards.get(shard), after.shards.get(shard)
    sizes = after.partition.sizes
    return ShardRecord(
        shard=shard,
        seed=seed_of(before.settings, after.seeds, shard),
        nodes=int(sizes[shard]) if shard < len(sizes) else 0,
        before=shard_digest(old) if old else None,
        after=shard_digest(new) if new else None,
    )


def _relearned(before: State, after: State) -> tuple[str, ...]:
    """The names of the aggregator's tensors that have other bytes than before."""
    old, new = before.aggregator.tensors, after.aggregator.tensors
    return tuple(sorted(name for name in new if not _same(name, old.get(name), new[name])))


def _same(name: str, old: NDArray[Any] | None, new: NDArray[Any]) -> bool:
    if old is new:
        return True
    if old is None or (old.dtype, old.shape) != (new.dtype, new.shape):
        return False
    if name.endswith(BY_BLOCK):
        return same_blocks(old, new)
    before, after = _bytes(old), _bytes(new)
    # Where they differ, mostly the beginning does.
    alike = before[:_FIRST].tobytes() == after[:_FIRST].tobytes()
    return alike and (len(before) <= _FIRST or np.array_equal(before, after))


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _moved(after: State) -> tuple[int | str, ...]:
    """Return the ids of rows of an embedding that moved, or their names where they have them."""
    nodes = np.asarray(getattr(after.aggregator, "changed", ()), dtype=np.int64)
    called = after.graph.names_of(nodes) if after.graph.called_by_text else nodes
    return tuple(called.tolist())


def _single_rows(settings: Settings, after: State, shards: Sequence[int]) -> list[str]:
    """Note retrained shards whose batch norms have seen a single node."""
    single = [
        shard
        for shard in sorted(shards)
        if shard in after.shards
        and after.partition.sizes[shard] == 1
        and any(name.endswith("running_var") for name in after.shards[shard].tensors)
        and task_graph(after.graph, after.partition, shard, settings.halo_key).num_nodes == 1
    ]
    return [
        f"shard {shard} was trained on a single node: its batch norms take the variance as 0"
        for shard in single
    ]
