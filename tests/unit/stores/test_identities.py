"""Keys of roles come from the services that have them, and go nowhere else."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cklog.stores.deadlines import Deadline
from cklog.stores.identities import Identity, Keys
from cklog.stores.options import Settings, settings_of
from cklog.stores.patience import NotServed

LATER = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
FOUND = {"AccessKeyId": "AKIA", "SecretAccessKey": "secret", "Token": "token", "Expiration": LATER}
TOKENS = (
    "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>AKIA</AccessKeyId><SecretAccessKey>secret"
    f"</SecretAccessKey><SessionToken>token</SessionToken><Expiration>{LATER}</Expiration></Credentials>"
    "</AssumeRoleResult></AssumeRoleResponse>"
)


class Service:
    """A service of credentials: answers by path, and the requests that came."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.base = f"http://127.0.0.1:{server.server_port}"
        self.answers: dict[str, tuple[int, str]] = {}
        self.asked: list[tuple[str, str, dict[str, str]]] = []


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Service]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ROLE_ARN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
            status, body = made.answers.get(self.path.partition("?")[0], (404, ""))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Location", "http://127.0.0.1:9/")
            self.end_headers()
            self.wfile.write(body.encode())

        do_PUT = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = Service(server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield made
    server.shutdown()
    server.server_close()


def keys(**values: str) -> Keys | None:
    return Identity(Settings("s3", values)).keys(Deadline(5.0))


def test_nobody_has_no_keys_and_who_has_some_is_asked_nothing(service: Service) -> None:
    assert keys(anonymous="true", access_key="a", secret_key="b") is None
    assert keys(access_key="a", secret_key="b") == ("a", "b", None, float("inf"))
    assert not service.asked


def test_a_container_has_keys_for_its_token(service: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("mine\n")
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{service.base}/v1/keys")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(tmp_path / "token"))
    service.answers["/v1/keys"] = (200, json.dumps(FOUND))
    found = keys()
    assert found is not None
    assert found[:3] == ("AKIA", "secret", "token")
    assert service.asked[0][2]["authorization"] == "mine"


@pytest.mark.parametrize("uri", ["http://example.org/keys", "http://127.0.0.1.example.org/keys"])
def test_the_token_of_a_container_goes_to_no_other_host(monkeypatch: pytest.MonkeyPatch, uri: str) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", uri)
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "mine")
    monkeypatch.setattr("cklog.stores.identities.connect", lambda *_: pytest.fail("it was sent"))
    with pytest.raises(NotServed, match="neither https nor this machine"):
        keys()


def test_a_machine_has_keys_of_its_role_by_a_token_of_its_own(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", service.base)
    roles = "/latest/meta-data/iam/security-credentials/"
    service.answers |= {"/latest/api/token": (200, "T"), roles: (200, "role"), f"{roles}role": (200, json.dumps(FOUND))}
    found = keys()
    assert found is not None
    assert found[:3] == ("AKIA", "secret", "token")
    assert [(method, path) for method, path, _ in service.asked] == [
        ("PUT", "/latest/api/token"),
        ("GET", roles),
        ("GET", f"{roles}role"),
    ]
    assert service.asked[2][2]["x-aws-ec2-metadata-token"] == "T"


def test_a_job_has_keys_of_its_role_by_a_file(
    service: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "web").write_text("identity")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "web"))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", service.base)
    service.answers["/"] = (200, TOKENS)
    found = keys()
    assert found is not None
    assert found[:3] == ("AKIA", "secret", "token")
    assert "WebIdentityToken=identity" in service.asked[0][1]
    assert "authorization" not in service.asked[0][2]


def test_a_role_that_is_named_is_assumed_with_the_keys_there_are(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "BASE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "base secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", service.base)
    service.answers["/"] = (200, TOKENS)
    found = keys(role_arn="arn:aws:iam::1:role/r", external_id="x")
    assert found is not None
    assert found[:3] == ("AKIA", "secret", "token")
    assert "ExternalId=x" in service.asked[0][1]
    assert "Credential=BASE/" in service.asked[0][2]["authorization"]
    assert "/us-east-1/sts/aws4_request" in service.asked[0][2]["authorization"]


def test_a_command_of_the_profile_prints_keys(service: Service, tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text(json.dumps(FOUND | {"SessionToken": "token", "Token": None}))
    command = f"{sys.executable} -c \"print(open('{tmp_path}/keys.json').read())\""
    found = keys(credential_process=command)
    assert found is not None
    assert found[:3] == ("AKIA", "secret", "token")


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"AccessKeyId": 5, "SecretAccessKey": 6}', "[" * 50_000])
def test_an_answer_without_keys_is_none(service: Service, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{service.base}/v1/keys")
    service.answers["/v1/keys"] = (200, body)
    with pytest.raises(NotServed, match="no credentials"):
        keys()


@pytest.mark.parametrize("status", [302, 307, 403, 500])
def test_an_answer_of_another_status_is_none(service: Service, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{service.base}/v1/keys")
    service.answers["/v1/keys"] = (status, json.dumps(FOUND))
    with pytest.raises(NotServed, match=f"no credentials: .* HTTP {status}"):
        keys()


def test_keys_are_asked_for_once_and_again_before_they_expire(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{service.base}/v1/keys")
    service.answers["/v1/keys"] = (200, json.dumps(FOUND))
    identity = Identity(Settings("s3", {}))
    assert identity.keys(Deadline(5.0)) == identity.keys(Deadline(5.0))
    assert len(service.asked) == 1
    monkeypatch.setattr("time.time", lambda: datetime.fromisoformat(LATER).timestamp() - 60)
    identity.keys(Deadline(5.0))
    assert len(service.asked) == 2


def test_without_any_keys_nothing_is_sent(service: Service) -> None:
    with pytest.raises(NotServed, match="no credentials: no keys, no profile"):
        keys()


@pytest.mark.parametrize(
    ("entry", "source"),
    [
        ("sso_session = work", "AWS SSO"),
        ("sso_start_url = https://x.example/start", "AWS SSO"),
        ("login_session = arn:aws:iam::1:user/x", "`aws login`"),
        ("role_arn = arn:aws:iam::1:role/x", "a role"),
    ],
)
def test_a_profile_with_keys_that_cklog_cannot_get_says_how_aws_hands_them_over(
    service: Service, tmp_path: Path, entry: str, source: str
) -> None:
    (tmp_path / "config").write_text(f"[profile work]\nregion = eu-west-1\n{entry}\n")
    settings = settings_of("s3://b", {"profile": "work"}, {"AWS_CONFIG_FILE": str(tmp_path / "config")})
    with pytest.raises(NotServed) as refused:
        Identity(settings).keys(Deadline(5.0))
    assert f"profile work gets its keys from {source}" in str(refused.value)
    assert "credential_process = aws configure export-credentials --profile work" in str(refused.value)
    assert not service.asked
