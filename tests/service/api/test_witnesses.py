"""Receipts carry what witnesses have cosigned; no witness is in the way of an erasure."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from typer.testing import CliRunner

from grapheraser.cli.app import app
from grapheraser.errors import ParameterError, VerificationError
from grapheraser.receipts import Part
from grapheraser.receipts.checking import check_part
from grapheraser.receipts.keys import Checkpoint, PublicKey, SigningKey, signatures_of, verifier_key
from grapheraser.receipts.tree import root_of
from grapheraser.receipts.witness import Answer, TrustedLog, Witness, WitnessKey
from grapheraser.service.api import start
from grapheraser.service.api.keys import Role
from grapheraser.service.api.witnesses import RefusedError, Remote
from grapheraser.service.settings import Settings
from grapheraser.service.witness import trusted_log, witness_app
from grapheraser.store.keys import KeyFolder
from tests.receipts.test_witness import InMemory
from tests.service.api.conftest import Api, opened
from tests.service.api.test_routes import erase


def operator_key() -> PublicKey:
    return PublicKey(KeyFolder().signing_key().public)


def new_witness(name: str, states: InMemory | None = None) -> Witness:
    key = SigningKey(Ed25519PrivateKey.generate())
    return Witness(
        name, key, [TrustedLog(operator_key())], InMemory() if states is None else states
    )


@contextmanager
def listening(witness: Witness) -> Iterator[str]:
    with start.listening(witness_app(witness), Settings(port=0)) as url:
        yield url


def ask_all(api: Api) -> list[Exception | None]:
    """Ask every witness once; return what went wrong."""
    found: list[Exception | None] = []
    for remote in api.parts.witnesses.remotes:
        try:
            api.parts.witnesses.ask(remote)
            found.append(None)
        except (OSError, RefusedError, VerificationError) as error:
            found.append(error)
    return found


def collected(api: Api, name: str) -> Part:
    found = api.call("GET", f"/api/v1/requests/{name}/receipt/1", Role.REQUESTER)
    assert found.status_code == 200
    return Part.from_json(found.text)


def test_receipts_carry_cosignatures_of_a_log_that_has_grown(run: Path) -> None:
    one, two = new_witness("w.example/1"), new_witness("w.example/2")
    with ExitStack() as held:
        first, second = (held.enter_context(listening(each)) for each in (one, two))
        urls = f"{first},{second}#{two.key.line}"
        api = held.enter_context(opened(run, witness=urls, witness_quorum=2))
        names = []
        for _ in range(3):
            names += erase(api, 1)
            assert ask_all(api) == [None, None]
        for name in names:
            part = collected(api, name)
            found = check_part(part, [operator_key()], witnesses=[one.key, two.key])
            assert sum(line.startswith("cosigned by w.example") for line in found.lines) == 2
            assert part.log.size == 3
        note = api.call("GET", "/api/v1/log/checkpoint", Role.READER).text
        assert [name for name, _ in signatures_of(note)][1:] == ["w.example/1", "w.example/2"]
        assert note.startswith(str(api.parts.log.read()[1].checkpoint))


def test_a_service_that_was_started_again_goes_on_with_its_witnesses(run: Path) -> None:
    witness = new_witness("w")
    with listening(witness) as url:
        for more in (0, 2, 0):
            with opened(run, witness=url) as api:
                names = erase(api, 1 + more) if more or not api.service.served.now.version else []
                assert ask_all(api) == [None]
                for name in names:
                    check_part(collected(api, name), [operator_key()], witnesses=[witness.key])


def test_a_witness_that_is_away_blocks_nothing_and_the_receipt_says_no_more_than_holds(
    run: Path,
) -> None:
    away, there = new_witness("away"), new_witness("there")
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and never listens
        gone = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        with listening(there) as url, opened(run, witness=f"{gone},{url}") as api:
            (name,) = erase(api, 1)
            part = collected(api, name)
            check_part(part, [operator_key()])  # completed, signed, and without a witness
            with pytest.raises(VerificationError, match="0 of 1 witnesses"):
                check_part(part, [operator_key()], witnesses=[there.key])
            refused, answered = ask_all(api)
            assert isinstance(refused, OSError)
            assert answered is None
            part = collected(api, name)
            check_part(part, [operator_key()], witnesses=[there.key])
            check_part(part, [operator_key()], witnesses=[there.key, away.key], quorum=1)
            with pytest.raises(VerificationError, match="1 of 2 witnesses"):
                check_part(part, [operator_key()], witnesses=[there.key, away.key])


def test_a_log_that_was_rewritten_is_refused_and_the_operator_is_told(run: Path) -> None:
    states = InMemory()
    witness = new_witness("w", states)
    with listening(witness) as url, opened(run, witness=url) as api:
        erase(api, 2)
        key, origin = KeyFolder().signing_key(), api.parts.log.read()[1].run
        forked = [leaf[::-1] for leaf in api.parts.log.leaves(2)]
        states.put(origin, Checkpoint(origin, 2, root_of(forked)).signed_by(key))
        (error,) = ask_all(api)
        assert isinstance(error, RefusedError)
        assert api.parts.cosigned.best(1) is None
        assert "witnesses_refusing 1.0" in api.call("GET", "/metrics").text
        longer = [*forked, *forked]
        states.put(origin, Checkpoint(origin, 4, root_of(longer)).signed_by(key))
        (error,) = ask_all(api)
        assert "it has seen 4 entries, and the log has 2" in str(error)


class Hostile:
    """A witness that answers whatever it likes."""

    def __init__(self, *answers: Answer) -> None:
        self.answers, self.key = list(answers), new_witness("hostile").key

    def add_checkpoint(self, body: bytes) -> Answer:
        del body
        return self.answers.pop(0) if self.answers else Answer(500, "")


@pytest.mark.parametrize(
    "answers",
    [
        [Answer(200, "— hostile AAAA\n")],
        [Answer(200, "")],
        [Answer(200, "\x00" * 1000)],
        [Answer(200, "x" * 100_000)],
        [Answer(409, "1\n")],
        [Answer(409, "9" * 4000 + "\n")],
        [Answer(409, "0\n"), Answer(409, "0\n")],
        [Answer(409, "-1\n")],
        [Answer(404, "")],
        [Answer(302, "")],
    ],
    ids=lambda answers: f"{answers[0].status}-{answers[0].body[:6]!r}",
)
def test_no_answer_of_a_witness_gets_into_a_receipt_unless_it_fits(
    run: Path, answers: list[Answer]
) -> None:
    hostile: Any = Hostile(*answers)
    with listening(hostile) as url, opened(run, witness=url) as api:
        (name,) = erase(api, 1)
        (error,) = ask_all(api)
        assert error is not None
        assert api.parts.cosigned.best(1) is None
        check_part(collected(api, name), [operator_key()])


def test_each_witness_is_asked_in_the_background_whenever_a_version_is_published(run: Path) -> None:
    from tests.waiting import until

    witness = new_witness("w")
    with listening(witness) as url, opened(run, witness=url) as api:
        api.parts.witnesses.start()
        try:
            for size in (1, 2):
                (name,) = erase(api, 1)
                until(partial(api.parts.cosigned.best, size))
                check_part(collected(api, name), [operator_key()], witnesses=[witness.key])
        finally:
            api.parts.witnesses.stop()


@pytest.mark.parametrize("text", ["ftp://w", "w.example", "https://", "http://w#nonsense"])
def test_what_is_no_witness_is_refused(text: str) -> None:
    with pytest.raises((ParameterError, VerificationError)):
        Remote(text)


def test_keys_of_logs_are_lines_or_pem() -> None:
    assert trusted_log(operator_key().to_pem()) == TrustedLog(operator_key())
    line = verifier_key("some/log", operator_key().public)
    assert trusted_log(line) == TrustedLog(operator_key(), "some/log")
    for odd in ("nonsense", new_witness("w").key.line):
        with pytest.raises(VerificationError):
            trusted_log(odd)


def test_the_process_of_a_witness_keeps_its_key_and_state(run: Path, tmp_path: Path) -> None:
    (tmp_path / "operator.pub").write_text(operator_key().to_pem())
    command = [sys.executable, "-m", "grapheraser", "witness", str(tmp_path / "witness")]
    command += ["--name", "w", "--log", str(tmp_path / "operator.pub"), "--port", "0", "--json"]
    lines = set()
    for _ in range(2):  # killed and started again
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            text = ""
            while "}" not in text:
                text += process.stdout.readline()
            told = json.loads(text)
            lines.add(told["key"])
            try:
                with opened(run, witness=told["url"]) as api:
                    (name,) = erase(api, 1)
                    assert ask_all(api) == [None]
                    key = WitnessKey.read(told["key"])
                    check_part(collected(api, name), [operator_key()], witnesses=[key])
            finally:
                process.kill()
    assert len(lines) == 1


def test_receipts_are_verified_with_the_keys_of_witnesses(run: Path, tmp_path: Path) -> None:
    witness, other = new_witness("w"), new_witness("other")
    with listening(witness) as url, opened(run, witness=url) as api:
        (name,) = erase(api, 1)
        ask_all(api)
        bundle = api.call("GET", f"/api/v1/requests/{name}/receipt", Role.REQUESTER).text
        kept = api.call("GET", "/api/v1/log/checkpoint", Role.READER).text
        erase(api, 2)
    (tmp_path / "receipt.json").write_text(bundle)
    (tmp_path / "operator.pub").write_text(operator_key().to_pem())
    (tmp_path / "w.key").write_text(witness.key.line + "\n")
    (tmp_path / "kept").write_text(kept)
    verify = ["receipt", "verify", str(tmp_path / "receipt.json")]
    verify += ["--key", str(tmp_path / "operator.pub"), "--witness-key", str(tmp_path / "w.key")]
    runner = CliRunner()
    found = runner.invoke(app, verify)
    assert found.exit_code == 0, found.output
    assert "cosigned by w, " in found.output
    assert runner.invoke(app, [*verify, "--witness-key", other.key.line]).exit_code == 1
    found = runner.invoke(app, [*verify, "--witness-key", other.key.line, "--quorum", "1"])
    assert found.exit_code == 0, found.output
    since = ["receipts", str(run), "--since", str(tmp_path / "kept")]
    for more in ([], ["--key", str(tmp_path / "operator.pub")]):
        found = runner.invoke(app, [*since, *more, "--json"])
        assert found.exit_code == 0, found.output
        assert [one["sequence"] for one in json.loads(found.stdout)["receipts"]] == [2, 3]
    forged = Checkpoint(Checkpoint.read(kept).origin, 1, bytes(32))
    (tmp_path / "kept").write_text(forged.signed_by(KeyFolder().signing_key()))
    found = runner.invoke(app, since)
    assert isinstance(found.exception, VerificationError)
    assert "rewritten" in found.exception.message


def test_a_witness_key_is_read_by_its_line() -> None:
    key = new_witness("w").key
    assert WitnessKey.read(f"{key.line}\n") == key
