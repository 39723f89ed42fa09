"""Signatures equal those of AWS's own library for Python."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from cklog.stores.signing import escaped_path, escaped_query, signed_headers

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HOST = "minio:9000"


@pytest.mark.parametrize("token", [None, "FwoGZXIvYXdzEBY/+="])
@pytest.mark.parametrize(("method", "query"), [("GET", {}), ("HEAD", {}), ("GET", {"prefix": "a b/é+&=~", "list": ""})])
@pytest.mark.parametrize("path", ["/b/plain", "/b/a b/c=1&d", "/b/é/~x-_.y", "/b/100%/a+b/(c)!'*", "/b//double/./dot"])
def test_a_signature_is_that_of_botocore(
    monkeypatch: pytest.MonkeyPatch, path: str, token: str | None, method: str, query: dict[str, str]
) -> None:
    target, headers = escaped_path(path), {"Host": HOST, "Range": "bytes=5-9"}
    target += "?" + escaped_query(query) if query else ""
    found = signed_headers(method, target, headers, ("AKID", "secret/+key"), token, "eu-central-1", AT)

    monkeypatch.setattr(auth, "get_current_datetime", lambda: AT.replace(tzinfo=None), raising=False)
    request: Any = AWSRequest(method, f"http://{HOST}{target}", headers=headers)
    request.context["timestamp"] = AT.strftime("%Y%m%dT%H%M%SZ")
    signer = auth.S3SigV4Auth(Credentials("AKID", "secret/+key", token), "s3", "eu-central-1")
    request.headers["X-Amz-Content-SHA256"] = found["x-amz-content-sha256"]
    request.headers["X-Amz-Date"] = request.context["timestamp"]
    if token:
        request.headers["X-Amz-Security-Token"] = token
    canonical = signer.canonical_request(request)
    expected = signer.signature(signer.string_to_sign(request, canonical), request)
    assert found["authorization"].endswith(f"Signature={expected}")
