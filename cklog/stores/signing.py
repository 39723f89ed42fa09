"""The signature of a request for an object of S3: AWS Signature Version 4, of a request without a body.

https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import quote

_EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


def escaped_path(path: str) -> str:
    """Return the path of an object as a request has it.

    >>> escaped_path("/b/a b/é=1")
    '/b/a%20b/%C3%A9%3D1'
    """
    return quote(path, safe="/-_.~")


def escaped_query(query: Mapping[str, str]) -> str:
    """Return a query as a request has it, in the order in which it is signed.

    >>> escaped_query({"prefix": "a b/é", "list-type": "2"})
    'list-type=2&prefix=a%20b%2F%C3%A9'
    """
    return "&".join(sorted(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in query.items()))


def signed_headers(
    method: str,
    target: str,
    headers: Mapping[str, str],
    keys: tuple[str, str],
    token: str | None,
    region: str,
    at: datetime,
    service: str = "s3",
) -> dict[str, str]:
    """Return the headers of a signed request for a path, with its query, that is escaped already.

    `headers` has its Host, `keys` are the access key and the secret one, and `at` is UTC.
    """
    path, _, query = target.partition("?")
    stamp = at.strftime("%Y%m%dT%H%M%SZ")
    signed = {name.lower(): value.strip() for name, value in headers.items()}
    signed |= {"x-amz-content-sha256": _EMPTY_SHA256, "x-amz-date": stamp}
    if token:
        signed["x-amz-security-token"] = token
    names = ";".join(sorted(signed))
    lines = "".join(f"{name}:{signed[name]}\n" for name in sorted(signed))
    canonical = f"{method}\n{path}\n{query}\n{lines}\n{names}\n{_EMPTY_SHA256}"
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{keys[1]}".encode()
    for part in (stamp[:8], region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    signed["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={keys[0]}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return signed
