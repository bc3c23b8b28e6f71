"""OpenDSR 2.0: the self-certification checklist of processors, one test for each of its lines."""

from __future__ import annotations

import base64
import http.server
import json
import shutil
import threading
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.x509.oid import NameOID
from prometheus_client.parser import text_string_to_metric_families

from grapheraser.errors import DatabaseError, ParameterError, StoreError
from grapheraser.service.api.keys import Role
from grapheraser.service.api.metrics import Metrics
from grapheraser.service.api.opendsr.callbacks import Callbacks, Processor, Rules, statuses
from grapheraser.service.queue.requests import Event, State
from tests.service.api.conftest import Api, opened

DOMAIN = "privacy.example.org"


def certified(
    folder: Path, kind: str = "ecdsa", domain: str = DOMAIN, days: int = 10
) -> dict[str, str]:
    """A certificate and its key, as files; the settings that name them."""
    key: Any = {
        "ecdsa": lambda: ec.generate_private_key(ec.SECP256R1()),
        "rsa": lambda: rsa.generate_private_key(65537, 2048),
        "ed25519": ed25519.Ed25519PrivateKey.generate,
    }[kind]()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, domain)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=30))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(domain)]), critical=False)
        .sign(key, None if kind == "ed25519" else hashes.SHA256())
    )
    folder.mkdir(exist_ok=True)
    public, private = folder / f"{kind}.pem", folder / f"{kind}.key"
    public.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.touch(mode=0o600)
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return {
        "opendsr_domain": domain,
        "opendsr_certificate": str(public),
        "opendsr_key": str(private),
    }


@pytest.fixture(params=["ecdsa", "rsa"])
def dsr(request: pytest.FixtureRequest, run: Path, tmp_path: Path) -> Iterator[Api]:
    with opened(run, **certified(tmp_path / "tls", request.param)) as made:
        subjects = [
            {"subject": f"email:{who}@example.org", "nodes": [int(node)]}
            for who, node in zip(("ada", "bob", "eve"), train_nodes(made), strict=False)
        ]
        made.call("POST", "/api/v1/subjects", json={"entries": subjects})
        yield made


def train_nodes(api: Api) -> list[int]:
    return [int(node) for node in api.service.served.now.model.graph_.train_nodes]


def asking(who: str = "ada", **changes: Any) -> dict[str, Any]:
    return {
        "regulation": "gdpr",
        "subject_request_id": str(uuid.uuid4()),
        "subject_request_type": "erasure",
        "submitted_time": "2026-10-02T15:00:00Z",
        "subject_identities": [
            {
                "identity_type": "email",
                "identity_value": f"{who}@example.org",
                "identity_format": "raw",
            }
        ],
        "api_version": "2.0",
        **changes,
    }


def submit(api: Api, body: Any, role: Role = Role.REQUESTER) -> Any:
    return api.call("POST", "/opendsr/requests", role, json=body)


def check_signed(api: Api, headers: Any, body: bytes) -> None:
    """As a controller does: with the certificate that discovery names, before the body is read."""
    headers = httpx.Headers(headers)
    assert headers["X-OpenDSR-Processor-Domain"] == DOMAIN
    found = api.client.get("/opendsr/discovery").json()["processor_certificate"]
    path = found.removeprefix(f"https://{DOMAIN}")
    certificate = x509.load_pem_x509_certificate(api.client.get(path).content)
    key, signature = certificate.public_key(), base64.b64decode(headers["X-OpenDSR-Signature"])
    if isinstance(key, rsa.RSAPublicKey):
        key.verify(signature, body, padding.PKCS1v15(), hashes.SHA256())
    else:
        assert isinstance(key, ec.EllipticCurvePublicKey)
        key.verify(signature, body, ec.ECDSA(hashes.SHA256()))


def test_new_requests_are_processed(dsr: Api) -> None:
    body = asking()
    sent = submit(dsr, body)
    assert sent.status_code == 201
    found = sent.json()
    assert found["subject_request_id"] == body["subject_request_id"]
    assert json.loads(base64.b64decode(found["encoded_request"])) == body
    assert found["received_time"] < found["expected_completion_time"]
    assert found["controller_id"]
    node = train_nodes(dsr)[0]
    dsr.work()
    assert not dsr.service.served.now.model.graph_.contains([node])[0]


INVALID: dict[str, dict[str, Any]] = {
    "another regulation": {"regulation": "none"},
    "no UUID": {"subject_request_id": "ada"},
    "an upper-case UUID": {"subject_request_id": str(uuid.uuid4()).upper()},
    "a UUID of another version": {"subject_request_id": "a7551968-d5d6-14b2-9831-815ac9017798"},
    "a type that is not supported": {"subject_request_type": "access"},
    "no time": {"submitted_time": "yesterday"},
    "nobody": {"subject_identities": []},
    "an unknown identity type": {
        "subject_identities": [
            {"identity_type": "shoe_size", "identity_value": "42", "identity_format": "raw"}
        ]
    },
    "a hashed identity": {
        "subject_identities": [
            {"identity_type": "email", "identity_value": "aa", "identity_format": "sha256"}
        ]
    },
    "a callback without TLS": {"status_callback_urls": ["http://controller.example.org/"]},
    "a callback into the own network": {"status_callback_urls": ["https://10.0.0.1/"]},
    "an extension with unknown keys": {"extensions": {DOMAIN: {"colour": "red"}}},
    "an extension of another kind": {"extensions": {DOMAIN: {"nodes": ["ada"]}}},
}


@pytest.mark.parametrize("changes", INVALID.values(), ids=INVALID)
def test_new_requests_are_validated(dsr_shared: Api, changes: dict[str, Any]) -> None:
    answer = submit(dsr_shared, asking(**changes))
    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert "ada@example.org" not in answer.text  # no identity in an error
    assert dsr_shared.call("GET", "/api/v1/requests").json()["requests"] == []


@pytest.fixture(scope="module")
def dsr_shared(fitted: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("opendsr")
    run = Path(shutil.copytree(fitted, folder / "people"))
    with opened(run, **certified(folder / "tls")) as made:
        yield made


def test_our_extension_names_nodes_and_edges_and_others_are_left_alone(dsr: Api) -> None:
    node = train_nodes(dsr)[5]
    body = asking(
        subject_identities=[],
        extensions={DOMAIN: {"nodes": [node]}, "other.example.org": {"id": 7}},
    )
    assert submit(dsr, body).status_code == 201
    dsr.work()
    assert not dsr.service.served.now.model.graph_.contains([node])[0]


def test_several_identities_are_one_request(dsr: Api) -> None:
    ada, bob, *_ = train_nodes(dsr)
    two = asking("ada")["subject_identities"] + asking("bob")["subject_identities"]
    body = asking(subject_identities=[*two, *asking("nobody")["subject_identities"]])
    assert submit(dsr, body).status_code == 201
    dsr.work()
    assert not dsr.service.served.now.model.graph_.contains([ada, bob]).any()
    status = dsr.call("GET", f"/opendsr/requests/{body['subject_request_id']}", Role.REQUESTER)
    assert status.json()["results_count"] == 2


def test_a_repeated_request_is_the_same_and_another_under_its_id_refused(dsr: Api) -> None:
    body = asking()
    first, again = submit(dsr, body), submit(dsr, body)
    assert first.json()["received_time"] == again.json()["received_time"]
    other = asking("bob", subject_request_id=body["subject_request_id"])
    assert submit(dsr, other).status_code == 400
    assert len(dsr.call("GET", "/api/v1/requests").json()["requests"]) == 1


def test_a_person_who_is_not_known_is_completed_with_nothing(dsr: Api) -> None:
    body = asking("nobody")
    assert submit(dsr, body).status_code == 201
    dsr.work()
    found = dsr.call(
        "GET", f"/opendsr/requests/{body['subject_request_id']}", Role.REQUESTER
    ).json()
    assert (found["request_status"], found["results_count"]) == ("completed", 0)


def test_status_objects_tell_how_far_a_request_has_come(dsr: Api) -> None:
    body = asking()
    sent = submit(dsr, body).json()
    path = f"/opendsr/requests/{body['subject_request_id']}"
    found = dsr.call("GET", path, Role.REQUESTER).json()
    assert found["request_status"] == "pending"
    assert found["expected_completion_time"] == sent["expected_completion_time"]
    assert found["controller_id"] == sent["controller_id"]
    assert found["results_url"] is None
    dsr.work()
    found = dsr.call("GET", path, Role.REQUESTER).json()
    assert found["request_status"] == "completed"
    assert found["api_version"] == "2.0"
    unknown = dsr.call("GET", f"/opendsr/requests/{uuid.uuid4()}", Role.REQUESTER)
    assert unknown.status_code == 404
    assert dsr.call("GET", path, Role.OPERATOR).status_code == 404  # another controller's


def test_pending_requests_are_cancelled(dsr: Api) -> None:
    body, done = asking("ada"), asking("bob")
    submit(dsr, body)
    path = f"/opendsr/requests/{body['subject_request_id']}"
    answer = dsr.call("DELETE", path, Role.REQUESTER)
    assert answer.status_code == 202
    assert answer.json()["subject_request_id"] == body["subject_request_id"]
    check_signed(dsr, answer.headers, answer.content)
    assert dsr.call("GET", path, Role.REQUESTER).json()["request_status"] == "cancelled"
    submit(dsr, done)
    dsr.work()
    late = dsr.call("DELETE", f"/opendsr/requests/{done['subject_request_id']}", Role.REQUESTER)
    assert late.status_code == 400


def test_results_are_the_receipt_and_only_its_owner_gets_them(dsr: Api) -> None:
    body = asking()
    submit(dsr, body)
    dsr.work()
    path = f"/opendsr/requests/{body['subject_request_id']}"
    found = dsr.call("GET", path, Role.REQUESTER).json()
    assert found["results_count"] == 1
    where = found["results_url"].removeprefix(f"https://{DOMAIN}")
    assert dsr.client.get(where).status_code == 401
    assert len(dsr.call("GET", where, Role.REQUESTER).json()["parts"]) == 1


def test_discovery_tells_certificate_identities_and_types(dsr: Api) -> None:
    answer = dsr.client.get("/opendsr/discovery")
    found = answer.json()
    assert found["api_version"] == "2.0"
    assert found["supported_subject_request_types"] == ["erasure"]
    email = {"identity_type": "email", "identity_format": "raw"}
    assert email in found["supported_identities"]
    check_signed(dsr, answer.headers, answer.content)


def test_requests_need_authentication_and_the_right_role(dsr: Api) -> None:
    body = asking()
    assert dsr.call("POST", "/opendsr/requests", None, json=body).status_code == 401
    for role in (Role.READER, Role.AUDITOR):
        assert submit(dsr, body, role).status_code == 403


def test_answers_are_signed_with_the_private_key(dsr: Api) -> None:
    body = asking()
    sent = submit(dsr, body)
    check_signed(dsr, sent.headers, sent.content)
    status = dsr.call("GET", f"/opendsr/requests/{body['subject_request_id']}", Role.REQUESTER)
    check_signed(dsr, status.headers, status.content)


def test_the_private_key_is_protected(run: Path, tmp_path: Path) -> None:
    settings = certified(tmp_path / "tls")
    Path(settings["opendsr_key"]).chmod(0o644)
    with pytest.raises(StoreError, match="others can read"), opened(run, **settings):
        pass


@pytest.mark.parametrize(
    ("kind", "changes", "said"),
    [
        ("ed25519", {}, "RSA of at least 2048 bits, or ECDSA"),
        ("ecdsa", {"opendsr_domain": "other.example.org"}, "issued for the domain"),
        ("ecdsa", {"opendsr_key": ""}, "or none of them"),
    ],
)
def test_a_certificate_that_does_not_fit_is_refused(
    run: Path, tmp_path: Path, kind: str, changes: dict[str, str], said: str
) -> None:
    settings = certified(tmp_path / "tls", kind) | changes
    with pytest.raises(ParameterError, match=said), opened(run, **settings):
        pass


def test_a_certificate_of_another_key_or_another_time_is_refused(tmp_path: Path) -> None:
    one, other = certified(tmp_path / "one"), certified(tmp_path / "other")
    paths = Path(one["opendsr_certificate"]), Path(other["opendsr_key"])
    with pytest.raises(ParameterError, match="of another key"):
        Processor.read(DOMAIN, *paths)
    old = certified(tmp_path / "old", days=-1)
    with pytest.raises(ParameterError, match="not valid today"):
        Processor.read(DOMAIN, Path(old["opendsr_certificate"]), Path(old["opendsr_key"]))


class Controller(http.server.BaseHTTPRequestHandler):
    """A controller that refuses as many callbacks as it is told to, and keeps the others."""

    refusals = 0
    taken: list[tuple[dict[str, str], bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if type(self).refusals > 0:
            type(self).refusals -= 1
            self.send_response(503)
        else:
            type(self).taken.append((dict(self.headers), body))
            self.send_response(202)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def controller() -> Iterator[tuple[str, type[Controller]]]:
    handler = type("Fresh", (Controller,), {"refusals": 0, "taken": []})
    with http.server.HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/callbacks", handler
        server.shutdown()
        thread.join()


def test_callbacks_are_sent_on_every_status_and_tried_again(
    run: Path, tmp_path: Path, controller: tuple[str, type[Controller]]
) -> None:
    url, taken = controller
    settings = certified(tmp_path / "tls") | {"callback_hosts": "127.0.0.1"}
    with opened(run, **settings) as api:
        now = [1000.0]
        assert api.parts.processor is not None
        callbacks = Callbacks(
            api.parts.queue,
            api.parts.processor,
            Rules(("127.0.0.1",), attempts=3, first_delay=10.0),
            api.parts.metrics,
            clock=lambda: now[0],
        )
        object.__setattr__(api.parts, "callbacks", callbacks)
        node = train_nodes(api)[0]
        body = asking(
            subject_identities=[],
            extensions={DOMAIN: {"nodes": [node]}},
            status_callback_urls=[url],
        )
        assert submit(api, body).status_code == 201
        taken.refusals = 2
        assert callbacks.send_due() == 1  # refused
        assert callbacks.send_due() == 0  # rests
        now[0] += 10
        assert callbacks.send_due() == 1  # refused again
        now[0] += 10
        assert callbacks.send_due() == 0  # rests twice as long
        now[0] += 10
        assert callbacks.send_due() == 1
        assert callbacks.send_due() == 0  # nothing new
        api.work()
        while callbacks.send_due():
            pass
        told = [json.loads(content) for _, content in taken.taken]
        assert [one["request_status"] for one in told] == ["pending", "in_progress", "completed"]
        for headers, content in taken.taken:
            check_signed(api, headers, content)
            one = json.loads(content)
            assert one["subject_request_id"] == body["subject_request_id"]
            assert one["status_callback_url"] == url
        with api.service.database.reading() as connection:
            left = connection.exec_driver_sql("select count(*) from callbacks").scalar()
        assert left == 0


def test_a_callback_that_never_arrives_is_given_up_and_counted(api: Api, tmp_path: Path) -> None:
    files = certified(tmp_path / "tls")
    processor = Processor.read(
        DOMAIN, Path(files["opendsr_certificate"]), Path(files["opendsr_key"])
    )
    now, metrics = [0.0], Metrics()

    def fails(*_: object) -> None:
        raise OSError

    callbacks = Callbacks(
        api.parts.queue,
        processor,
        Rules(attempts=4),
        metrics,
        send=fails,
        clock=lambda: now[0],
    )
    name = api.submit(nodes=[train_nodes(api)[0]]).json()["id"]
    callbacks.add(name, ["https://controller.example.org/"], str(uuid.uuid4()))
    tried = 0
    for _ in range(100):
        tried += callbacks.send_due()
        now[0] += 10.0
    assert tried == 4
    counted = {
        sample.labels["outcome"]: sample.value
        for family in text_string_to_metric_families(metrics.page().decode())
        for sample in family.samples
        if sample.name == "grapheraser_opendsr_callbacks_total"
    }
    assert counted == {"retried": 3, "given up": 1}


def test_callbacks_of_a_running_service_are_sent(
    run: Path, tmp_path: Path, controller: tuple[str, type[Controller]]
) -> None:
    url, taken = controller
    settings = certified(tmp_path / "tls") | {"callback_hosts": "127.0.0.1"}
    with opened(run, **settings) as api:
        assert api.parts.callbacks is not None
        extension = {DOMAIN: {"nodes": [train_nodes(api)[0]]}}
        body = asking(subject_identities=[], extensions=extension, status_callback_urls=[url, url])
        submit(api, body)
        api.parts.callbacks.start()
        api.service.start()
        for _ in range(200):
            if any(b'"completed"' in content for _, content in taken.taken):
                break
            threading.Event().wait(0.1)
        api.parts.callbacks.stop()
        told = [json.loads(content)["request_status"] for _, content in taken.taken]
        assert told == ["pending", "in_progress", "completed"]


def test_the_major_version_can_be_in_the_path(dsr: Api) -> None:
    plain, versioned = (
        dsr.client.get(f"/opendsr{version}/discovery").json() for version in ("", "/v2")
    )
    assert plain == versioned


# The request types of the specification.
TYPES = ("access", "portability", "erasure", "restriction", "rectification")


@pytest.mark.parametrize("kind", TYPES)
def test_every_request_type_has_a_process_or_is_refused(dsr_own: Api, kind: str) -> None:
    found = dsr_own.client.get("/opendsr/discovery").json()
    body = asking(subject_request_type=kind)
    answer = submit(dsr_own, body)
    if kind not in found["supported_subject_request_types"]:
        assert answer.status_code == 400
        (error,) = answer.json()["errors"]
        assert "subject_request_type" in str(error)
        assert "erasure" in str(error)  # what is supported instead
        assert dsr_own.call("GET", "/api/v1/requests").json()["requests"] == []
        return
    assert answer.status_code == 201
    dsr_own.work()
    path = f"/opendsr/requests/{body['subject_request_id']}"
    done = dsr_own.call("GET", path, Role.REQUESTER).json()
    assert (done["request_status"], done["results_count"]) == ("completed", 1)


@pytest.fixture
def dsr_own(run: Path, tmp_path: Path) -> Iterator[Api]:
    with opened(run, **certified(tmp_path / "tls")) as made:
        entry = {"subject": "email:ada@example.org", "nodes": [train_nodes(made)[0]]}
        made.call("POST", "/api/v1/subjects", json={"entries": [entry]})
        yield made


def test_activity_is_logged_and_names_nobody(
    dsr_own: Api, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    done, stopped = asking(), asking("bob")
    submit(dsr_own, done)
    submit(dsr_own, stopped)
    name = f"/opendsr/requests/{stopped['subject_request_id']}"
    assert dsr_own.call("DELETE", name, Role.REQUESTER).status_code == 202
    dsr_own.work()
    listed = dsr_own.call("GET", "/api/v1/requests", Role.AUDITOR).json()["requests"]
    steps = {}
    for request in listed:
        path = f"/api/v1/requests/{request['id']}/events"
        events = dsr_own.call("GET", path, Role.AUDITOR).json()
        assert all(event["at"] for event in events)
        steps[request["state"]] = [event["state"] for event in events]
    assert steps == {
        "completed": ["received", "planned", "retraining", "published", "erased", "completed"],
        "cancelled": ["received", "cancelled"],
    }
    with (
        pytest.raises(DatabaseError, match="never changed or deleted"),
        dsr_own.service.database.writing() as connection,
    ):
        connection.exec_driver_sql("delete from events")
    ours = [one.getMessage() for one in caplog.records if not one.name.startswith("http")]
    written = json.dumps([ours, listed])
    for word in ("ada@", "bob@", done["subject_request_id"]):
        assert word not in written


def test_fulfilment_is_measured(dsr: Api) -> None:
    submit(dsr, asking())
    dsr.work()
    page = dsr.call("GET", "/metrics", Role.AUDITOR).text
    assert 'grapheraser_requests{state="completed"} 1.0' in page
    assert "grapheraser_requests_late 0.0" in page


def test_without_a_certificate_opendsr_is_off(shared: Api) -> None:
    assert shared.client.get("/opendsr/discovery").status_code == 503
    assert submit(shared, asking()).status_code == 503


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://controller.example.org/path?a=1", True),
        ("https://8.8.8.8/", True),
        ("http://inside/", True),
        ("http://controller.example.org/", False),
        ("https://localhost/", False),
        ("https://127.0.0.1/", False),
        ("https://[::1]/", False),
        ("https://192.168.0.1/", False),
        ("https://user:word@controller.example.org/", False),
        ("ftp://controller.example.org/", False),
        ("https://", False),
        ("https://controller.example.org:port/", False),
        ("nonsense", False),
    ],
)
def test_callbacks_go_to_public_hosts_or_to_those_that_are_trusted(url: str, allowed: bool) -> None:
    rules = Rules(hosts=("inside",))
    if allowed:
        rules.check(url)
    else:
        with pytest.raises(ParameterError, match="callback URL"):
            rules.check(url)


def test_statuses_are_told_once_each() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    states = [
        *(State.RECEIVED, State.PLANNED, State.RETRAINING, State.FAILED, State.PLANNED),
        *(State.RETRAINING, State.PUBLISHED, State.ERASED, State.COMPLETED),
    ]
    history = [Event(n, "run", "request", state, at) for n, state in enumerate(states)]
    assert statuses(history) == [*("pending", "in_progress", "pending", "in_progress", "completed")]
