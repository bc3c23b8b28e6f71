"""The subject map: who is who is found by the identity, and by nothing that is stored."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from grapheraser.errors import ParameterError, StoreError, UnknownSubjectError
from grapheraser.graph.ids import name_id
from grapheraser.kinds import EDGES, FEATURES, LABELS, NODES, Item
from grapheraser.service.database import Database
from grapheraser.service.database.tables import SUBJECTS
from grapheraser.service.queue.queue import Queue
from grapheraser.service.queue.requests import RequestContent
from grapheraser.service.queue.vault import Vault


def test_what_belongs_to_a_subject_is_loaded_found_and_forgotten(queue: Queue) -> None:
    subjects = queue.subjects
    ada = RequestContent(subject="ada", nodes=(12,), edges=((17, 3),), features=(4,), labels=(5,))
    assert subjects.load([ada, RequestContent(subject="bob", nodes=(12, "b"))]) == 6
    assert subjects.load([ada]) == 0
    assert subjects.find("ada") == [
        Item(EDGES, (3, 17)),
        Item(FEATURES, (4,)),
        Item(LABELS, (5,)),
        Item(NODES, (12,)),
    ]
    assert subjects.find("bob") == sorted([Item(NODES, (12,)), Item(NODES, (int(name_id("b")),))])
    assert subjects.forget("ada") == 4
    with pytest.raises(UnknownSubjectError):
        subjects.find("ada")
    assert subjects.count() == 2


def test_with_a_node_goes_all_that_is_about_it(queue: Queue) -> None:
    subjects = queue.subjects
    subjects.load(
        [RequestContent(subject="ada", nodes=(1,), edges=((1, 2), (2, 3)), features=(1, 2))]
    )
    with queue.database.writing() as connection:
        subjects.forget_items(connection, [Item(NODES, (1,))])
    assert subjects.find("ada") == [Item(EDGES, (2, 3)), Item(FEATURES, (2,))]
    with queue.database.writing() as connection:
        subjects.forget_items(connection, [Item(FEATURES, (2,)), Item(EDGES, (9, 10))])
    assert subjects.find("ada") == [Item(EDGES, (2, 3))]


@pytest.mark.parametrize(
    "entry",
    [
        RequestContent(nodes=(1,)),
        RequestContent(subject="ada"),
        RequestContent(changes=({"nodes": [1]},)),
    ],
)
def test_an_entry_needs_a_subject_and_what_belongs_to_it(
    queue: Queue, entry: RequestContent
) -> None:
    with pytest.raises(ParameterError):
        queue.subjects.load([RequestContent(subject="bob", nodes=(1,)), entry])
    assert queue.subjects.count() == 0


def test_a_request_about_an_unknown_subject_is_refused(queue: Queue) -> None:
    with pytest.raises(UnknownSubjectError) as caught:
        queue.submit(RequestContent(subject="ada"))
    assert "ada" not in str(caught.value)
    assert queue.list().requests == ()


def test_nothing_that_is_stored_can_be_read_without_the_secret(
    database: Database, queue: Queue
) -> None:
    queue.subjects.load([RequestContent(subject="ada", nodes=(987_654_321,))])
    stranger = Queue(database, queue.run, Vault(b"x" * 32))
    with pytest.raises(UnknownSubjectError):
        stranger.subjects.find("ada")
    with database.reading() as connection:
        (row,) = connection.execute(sa.select(SUBJECTS)).all()
    assert b"987654321" not in row.sealed
    with pytest.raises(StoreError, match="another secret"):
        stranger.vault.unseal(row.sealed, row.subject)


def test_what_is_sealed_opens_in_its_place_alone(vault: Vault) -> None:
    sealed = vault.seal({"nodes": [1]}, "row-1")
    assert vault.unseal(sealed, "row-1") == {"nodes": [1]}
    assert sealed != vault.seal({"nodes": [1]}, "row-1")
    for altered, place in ((sealed, "row-2"), (sealed[:-1] + b"?", "row-1"), (b"", "row-1")):
        with pytest.raises(StoreError):
            vault.unseal(altered, place)
    assert vault.mark("a", 1) == vault.mark("a", 1) != vault.mark("b", 1)
