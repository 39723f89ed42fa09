"""Whatever a server does, a command ends, says why in a line, and sends and prints no credential; nothing is damage."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest

from cklog.stores.deadlines import Deadline
from cklog.stores.opening import open_file
from cklog.stores.places import numbered
from cklog.stores.store import store_of
from tests.conftest import REPOSITORY, SAMPLES
from tests.integration.stores.behaviours import BEHAVIOURS, forever, listing
from tests.integration.stores.hostile import (
    ACCESS,
    BUCKET,
    PREFIX,
    SECRET,
    TOKEN,
    Asked,
    Behaviour,
    Hostile,
    Line,
    contents,
    hostile,
    objects_of,
    page,
)
from tests.integration.stores.server import DAMAGE
from tests.program import Ended, cklog

URI = f"s3://{BUCKET}/{PREFIX}"
OBJECTS = objects_of(SAMPLES / "uncoordinated-join")
OVERDUE_SECONDS = 20.0
"""After so long the server gives up in place of the client: what hung did so for minutes."""

pytestmark = pytest.mark.usefixtures("environment_without_stores")


def ask(server: Hostile, *more: str) -> Ended:
    """Ask with a time of 0.3 s, and hold what every ending has to be."""
    ended = cklog("recovery-line", URI, "-v", *server.words, "--store", "timeout=0.3", *more)
    told = ended.out + ended.err
    assert not server.overdue, "it ended since the server gave up"
    assert not [secret for secret in server.secrets if secret.lower() in told.lower()]
    assert not server.elsewhere, "a redirect was followed"
    assert "Traceback" not in told
    assert not [line for line in told.splitlines() if any(word in line for word in DAMAGE)]
    return ended


@pytest.mark.quarter
@pytest.mark.parametrize(("name", "place"), BEHAVIOURS, ids=[f"{place}: {name}" for name, place in BEHAVIOURS])
def test_a_hostile_store_is_given_up_in_a_line(name: str, place: str) -> None:
    behaviour, code = BEHAVIOURS[name, place]
    with hostile(OBJECTS, behaviour, place, OVERDUE_SECONDS) as server:
        ended = ask(server)
    assert ended.code == code, ended.out + ended.err
    if place == "LIST":
        assert ended.out == ""
        [line] = [line for line in ended.err.splitlines() if line.startswith("cklog: ")]
        assert line.startswith(f"cklog: {URI}: ")
    else:
        assert "cannot be read" in ended.err, ended.err
        assert len([line for line in ended.err.splitlines() if line.startswith("cklog: ")]) == 1


def test_a_listing_without_an_end_is_over_the_budget() -> None:
    """Full pages of new names are what a large bucket has, too."""
    with hostile(OBJECTS, forever(1000), "LIST", OVERDUE_SECONDS) as server:
        ended = ask(server, "--max-memory", "64MiB", "--store", "timeout=15")
    assert ended.code == 65
    assert f"cklog: {URI}: the number of files and folders below it is over the budget" in ended.err
    assert len(server.asked) < 20


@pytest.mark.parametrize("name", ["..", "../../other", "checkpoints/../a", ".", "a//b", "/a", "a\0b"])
def test_an_object_that_no_path_leads_to_is_named_as_unread(name: str) -> None:
    """Printed in a script that deletes, it would lead out of the folder."""
    listed = [*(contents(key, str(len(data))) for key, data in OBJECTS.items()), contents(f"{PREFIX}/{name}", "9")]
    with hostile(OBJECTS, listing(lambda asked: page(listed)), "LIST", OVERDUE_SECONDS) as server:
        ended = ask(server)
        deleting = cklog("retention", URI, *server.words, "--format", "script")
    assert ended.code == 5
    assert "is no path: it is not read" in ended.out + ended.err
    assert "/../" not in deleting.out


def test_a_listing_in_any_order_is_the_same_listing() -> None:
    """Not all stores sort it; and a name may have a line break."""
    listed = [contents(key, str(len(data))) for key, data in reversed(OBJECTS.items())]
    listed.append(contents(f"{PREFIX}/line\nbreak", "0"))
    with hostile(OBJECTS, listing(lambda asked: page(listed)), "LIST", OVERDUE_SECONDS) as server:
        ended = ask(server)
    assert ended.out.replace(URI, "here") == cklog("recovery-line", SAMPLES / "uncoordinated-join", "-v").out.replace(
        str(SAMPLES / "uncoordinated-join"), "here"
    )


def test_an_object_with_another_tag_than_was_listed_is_unread() -> None:
    def behave(asked: Asked, line: Line) -> None:
        listed = [contents(key, str(len(data)), "<ETag>&quot;old&quot;</ETag>") for key, data in OBJECTS.items()]
        if asked.what == "LIST":
            line.answer("200 OK", body=page(listed))
        else:
            data, (start, end) = OBJECTS[asked.key], asked.range
            tag = '"new"' if "channels" in asked.key else '"old"'
            about = {"Content-Range": f"bytes {start}-{end - 1}/{len(data)}", "ETag": tag}
            line.answer("206 Partial", about, data[start:end])

    with hostile(OBJECTS, behave, "ALL", OVERDUE_SECONDS) as server:
        ended = ask(server)
    assert ended.code == 5
    assert "it was overwritten since it was listed" in ended.out + ended.err


def test_the_next_try_asks_for_the_rest_of_an_answer_that_breaks_off() -> None:
    seen = set[str]()

    def behave(asked: Asked, line: Line) -> None:
        if asked.key in seen:
            line.server.honest(asked, line)
            return
        seen.add(asked.key)
        data, (start, end) = OBJECTS[asked.key], asked.range
        about = {"Content-Range": f"bytes {start}-{end - 1}/{len(data)}", "Content-Length": str(end - start)}
        line.head("206 Partial", about)
        line.send(data[start : (start + end) // 2])
        line.sock.shutdown(socket.SHUT_RDWR)

    with hostile(OBJECTS, behave, "GET", OVERDUE_SECONDS) as server:
        ended = cklog("recovery-line", URI, *server.words, "--store", "timeout=3")
        asked = [one for one in server.asked if one.key.endswith("channels/orders.jsonl")]
    here = SAMPLES / "uncoordinated-join"
    assert ended.out.replace(URI, str(here)) == cklog("recovery-line", here).out
    (first, end), *_, (again, also) = (one.range for one in asked)
    assert (first, also) == (0, end)
    assert 0 < again < end


@pytest.mark.parametrize("name", ["silence", "negative length", "slow headers", "307 to another port", "500 forever"])
def test_an_object_that_is_looked_at_alone_is_given_up_as_well(name: str) -> None:
    with hostile({}, BEHAVIOURS[name, "GET"][0], "HEAD", OVERDUE_SECONDS) as server:
        ended = ask(server)
    assert ended.code == 66
    assert [one.what for one in server.asked][:2] == ["LIST", "HEAD"]


@pytest.mark.parametrize("name", ["307 to another port", "slow error body", "silence", "echo in the body"])
def test_keys_of_a_role_are_sent_nowhere_else_either(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = json.dumps({"AccessKeyId": ACCESS, "SecretAccessKey": SECRET, "SessionToken": TOKEN})
    (tmp_path / "keys").write_text(found)
    (tmp_path / "config").write_text(f"[default]\ncredential_process = cat {tmp_path / 'keys'}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    with hostile(OBJECTS, BEHAVIOURS[name, "LIST"][0], "LIST", OVERDUE_SECONDS) as server:
        options = ["--store", f"endpoint=http://127.0.0.1:{server.port}", "--store", "timeout=0.5"]
        ended = cklog("recovery-line", URI, *options)
    assert ended.code == 66
    assert not server.overdue
    assert not server.elsewhere
    assert server.asked[0].headers["x-amz-security-token"] == TOKEN
    assert not [secret for secret in server.secrets if secret.lower() in ended.err.lower()]


class _Certificate:
    """A certificate for 127.0.0.1 that it signed itself, as a file and as a server has it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "certificate.pem"
        trustme = pytest.importorskip("cryptography.x509")
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        name = trustme.Name([trustme.NameAttribute(trustme.NameOID.COMMON_NAME, "127.0.0.1")])
        now = datetime.now(UTC)
        built = trustme.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        built = (
            built.serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        )
        address = trustme.IPAddress(ip_address("127.0.0.1"))
        built = built.add_extension(trustme.SubjectAlternativeName([address]), critical=False)
        built = built.add_extension(trustme.BasicConstraints(ca=True, path_length=None), critical=True)
        plain = serialization.NoEncryption()
        form = serialization.PrivateFormat.PKCS8
        self.file.write_bytes(
            key.private_bytes(serialization.Encoding.PEM, form, plain)
            + built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.file)


def test_a_certificate_that_nobody_vouches_for_is_not_accepted(tmp_path: Path) -> None:
    with hostile(OBJECTS, BEHAVIOURS["403", "LIST"][0], "", OVERDUE_SECONDS, _Certificate(tmp_path).context) as server:
        ended = ask(server)
    assert (ended.code, ended.out) == (66, "")
    assert "the store's certificate is not accepted" in ended.err
    assert not server.asked


def test_a_redirect_from_https_to_http_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = _Certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.file))
    behave, _ = BEHAVIOURS["301 to another port", "GET"]
    with hostile(OBJECTS, behave, "GET", OVERDUE_SECONDS, certificate.context) as server:
        ended = ask(server)
        assert {one.what for one in server.asked} == {"LIST", "GET"}
    assert ended.code == 5


@pytest.mark.parametrize("name", ["silence", "HTTP/0.9", "reset at once", "closed at once", "slow headers"])
def test_a_server_that_speaks_no_tls_is_given_up(name: str) -> None:
    with hostile(OBJECTS, BEHAVIOURS[name, "LIST"][0], "connect", OVERDUE_SECONDS) as server:
        server.scheme = "https"
        ended = ask(server)
    assert (ended.code, ended.out) == (66, "")


def test_a_name_that_is_looked_up_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: ended.wait(OVERDUE_SECONDS) and [])
    with hostile(OBJECTS, BEHAVIOURS["403", "LIST"][0], "", OVERDUE_SECONDS) as server:
        assert ask(server).code == 66
        ended.set()


OTHERS = {
    "gs": ("gs://b/x", ["--store", "anonymous=true"]),
    "abfss": (
        "abfss://c@a.dfs.core.windows.net/x",
        ["--store", "scheme=http", "--store", "account_key=c2VjcmV0c2VjcmV0"],
    ),
}


@pytest.mark.quarter
@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize(
    "name", ["silence", "slow headers", "slow error body", "307 to another port", "301 to another port"]
)
def test_stores_that_pyarrow_reads_are_given_up_as_well(kind: str, name: str) -> None:
    uri, options = OTHERS[kind]
    for seconds in (0.5, 2, 8):  # on a busy machine the library needs a while before it asks
        with hostile({}, BEHAVIOURS[name, "LIST"][0], "ALL", OVERDUE_SECONDS) as server:
            endpoint = ["--store", f"endpoint=http://127.0.0.1:{server.port}", "--store", f"timeout={seconds}"]
            ended = cklog("recovery-line", uri, *endpoint, *options)
        if server.asked:
            break
    assert (ended.code, ended.out) == (66, "")
    assert ended.err.startswith(f"cklog: {uri}: ")
    assert not server.overdue
    assert not server.elsewhere
    assert server.asked
    assert "c2VjcmV0c2VjcmV0" not in ended.err


def no_type(asked: Asked, line: Line) -> None:
    """Azure's client aborts where an answer does not say of which type it is."""
    line.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def no_xml(asked: Asked, line: Line) -> None:
    """The XML library of Azure's client prints lines of its own."""
    line.answer("200 OK", {"Content-Type": "application/xml"}, b"hello")


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("behaviour", [no_type, no_xml])
def test_an_answer_that_ends_a_client_of_pyarrow_ends_no_command(
    kind: str, behaviour: Behaviour, capfd: pytest.CaptureFixture[str]
) -> None:
    uri, options = OTHERS[kind]
    with hostile({}, behaviour, "ALL", OVERDUE_SECONDS) as server:
        endpoint = ["--store", f"endpoint=http://127.0.0.1:{server.port}", "--store", "timeout=8"]
        ended = cklog("recovery-line", uri, *endpoint, *options)
    assert (ended.code, ended.out) == (66, "")
    assert [line.split(": ")[0] for line in ended.err.splitlines()] == ["cklog", "hint"]
    assert server.asked
    if kind == "abfss":
        assert "pyarrow's client crashed (SIGABRT)" in ended.err
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", [*OTHERS, "s3"])
def test_nothing_is_written_to_an_object_store_and_none_is_asked(kind: str) -> None:
    """Writing would be pyarrow's, which follows redirects of S3 and waits for others without a deadline."""
    uri, options = OTHERS.get(kind, (URI, []))
    with hostile({}, BEHAVIOURS["307 to another port", "LIST"][0], "ALL", OVERDUE_SECONDS) as server:
        words = server.words if kind == "s3" else ["--store", f"endpoint=http://127.0.0.1:{server.port}", *options]
        ended = cklog("impact", SAMPLES / "odysseus-gap", "--annotate", f"{uri}/out", *words)
    assert (ended.code, ended.out) == (73, "")
    assert ended.err.startswith(f"cklog: {uri.rpartition('/')[0]}: cklog writes nothing to object stores\n")
    assert not server.asked
    assert not server.elsewhere


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*OTHERS, "s3"])
def test_a_process_ends_while_a_call_hangs(kind: str) -> None:
    """A library that puts itself away at the end must not wait for its own call."""
    uri, options = OTHERS.get(kind, (URI, ["--store", f"access_key={ACCESS}", "--store", f"secret_key={SECRET}"]))
    with hostile({}, BEHAVIOURS["slow error body", "LIST"][0], "ALL", OVERDUE_SECONDS) as server:
        endpoint = ["--store", f"endpoint=http://127.0.0.1:{server.port}", "--store", "timeout=1"]
        words = [sys.executable, "-m", "cklog", "recovery-line", uri, *endpoint, *options]
        ended = subprocess.run(words, capture_output=True, text=True, cwd=REPOSITORY, check=False)
        assert not server.overdue
    assert ended.returncode == 66


def test_a_large_range_has_the_time_again_for_each_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is slow and arrives is read; and nothing is asked for twice."""
    renewed: list[float] = []
    monkeypatch.setattr(Deadline, "renew", lambda self: renewed.append(self.seconds))
    data = bytes(range(256)) * (7 << 11)
    with hostile({f"{PREFIX}/large": data}, BEHAVIOURS["403", "GET"][0], "", OVERDUE_SECONDS) as server:
        uri = numbered(f"{URI}/large", store_of(server.options.items(), [URI]), len(data))
        with open_file(uri) as file:
            assert file.read() == data
    assert renewed == [10.0] * 3
    assert [one.what for one in server.asked] == ["GET"]
