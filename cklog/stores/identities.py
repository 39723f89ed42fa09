"""As whom S3 is asked: by keys that are given, or those of the role that this machine, container or job has.

Keys of a role come from services of AWS. They are asked as the store is: before a deadline, and no redirect is
followed.
https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html
"""

from __future__ import annotations

import errno
import functools
import http.client
import json
import os
import re
import shlex
import ssl
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from cklog.isolation import run_process
from cklog.stores.deadlines import Deadline
from cklog.stores.exchanges import connect
from cklog.stores.options import Settings, captured_environment, settings_of
from cklog.stores.patience import NotServed
from cklog.stores.signing import escaped_query, signed_headers

_CONTAINER, _MACHINE = "http://169.254.170.2", "http://169.254.169.254"
_LOCAL_HOSTS = frozenset({"127.0.0.1", "localhost", "::1", "169.254.170.2", "169.254.170.23", "fd00:ec2::23"})
"""To these hosts a container's token may be sent without TLS."""

_MACHINE_SECONDS = 1.0
"""A machine that is none of AWS has nobody who answers."""

_ANSWER_BYTES = 64 << 10
_SPARE_SECONDS = 300.0
_LEAST_SECRET = 16  # a shorter one may be in a name by chance
_NAME = re.compile(r"[\w+=,.@-]{1,128}")


class Keys(NamedTuple):
    """What a request is signed with; `expires` is a time of `time.time`."""

    access: str
    secret: str
    token: str | None
    expires: float = float("inf")


class Identity:
    """Finds the keys once, and again before they expire; threads share it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._keys: Keys | None = None

    def keys(self, deadline: Deadline) -> Keys | None:
        """Return the keys, None for nobody in particular.

        Raises
        ------
        NotServed : there are none
        OSError, http.client.HTTPException : who has them does not give them
        """
        if self._settings.anonymous:
            return None
        with self._lock:
            if self._keys is None or self._keys.expires - time.time() < _SPARE_SECONDS:
                self._keys = self._found(deadline)
            return self._keys

    def appears_in(self, text: str) -> bool:
        """Return whether a text has the secret key or the token; on small installations an access key is a name."""
        folded, keys = text.lower(), self._keys
        secrets = (keys.secret, keys.token) if keys else ()
        return any(len(one) >= _LEAST_SECRET and one.lower() in folded for one in secrets if one)

    def _found(self, deadline: Deadline) -> Keys:
        """Look for keys where they are said, then where roles have them."""
        role = self._settings.get("role_arn")
        settings = settings_of("s3://", {}, captured_environment()) if role else self._settings
        keys = _given(settings) or _of_process(settings, deadline) or self._of_role(settings, deadline)
        if not role:
            return keys
        query = {"Action": "AssumeRole", "RoleArn": role, "RoleSessionName": "cklog", "Version": "2011-06-15"}
        query |= {"ExternalId": external} if (external := self._settings.get("external_id")) else {}
        return self._of_tokens(query, keys, deadline)

    def _of_role(self, settings: Settings, deadline: Deadline) -> Keys:
        """Return the keys of the role of this job, container or machine."""
        get = os.environ.get
        if (file := get("AWS_WEB_IDENTITY_TOKEN_FILE")) and (role := get("AWS_ROLE_ARN")):
            query = {"Action": "AssumeRoleWithWebIdentity", "RoleArn": role, "Version": "2011-06-15"}
            query |= {"RoleSessionName": get("AWS_ROLE_SESSION_NAME") or "cklog", "WebIdentityToken": _file_text(file)}
            return self._of_tokens(query, None, deadline)
        if relative := get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"):
            return _of_json(_ask(f"{_CONTAINER}{relative}", {}, deadline))
        if full := get("AWS_CONTAINER_CREDENTIALS_FULL_URI"):
            if urlsplit(full).scheme != "https" and urlsplit(full).hostname not in _LOCAL_HOSTS:
                raise NotServed(errno.EACCES, "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor this machine")
            file = get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
            token = _file_text(file) if file else get("AWS_CONTAINER_AUTHORIZATION_TOKEN")
            return _of_json(_ask(full, {"Authorization": token} if token else {}, deadline))
        if source := settings.get("keys_from"):
            profile = settings.get("profile") or "default"
            command = f"credential_process = aws configure export-credentials --profile {profile}"
            raise NotServed(
                errno.EACCES,
                f"no credentials: profile {profile} gets its keys from {source}, which cklog does not ask. "
                f"Add this line to the profile: {command}",
            )
        if (get("AWS_EC2_METADATA_DISABLED") or "").lower() != "true" and (keys := self._of_machine(deadline)):
            return keys
        raise NotServed(errno.EACCES, "no credentials: no keys, no profile that has some, and no role of this machine")

    def _of_machine(self, deadline: Deadline) -> Keys | None:
        """Return the keys of the role of this machine, None if it has none."""
        base = (os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or _MACHINE).rstrip("/")
        soon = deadline.sooner(_MACHINE_SECONDS)
        path = f"{base}/latest/meta-data/iam/security-credentials/"
        wanted = {"X-aws-ec2-metadata-token-ttl-seconds": "600", "Content-Length": "0"}
        try:
            token = _ask(f"{base}/latest/api/token", wanted, soon, "PUT").decode("ascii", "replace")
            headers = {"X-aws-ec2-metadata-token": token}
            name = _ask(path, headers, soon).decode("ascii", "replace").strip()
            return _of_json(_ask(path + name, headers, soon)) if _NAME.fullmatch(name) else None
        except (OSError, http.client.HTTPException):  # nobody is there, as on any machine that is not AWS's
            return None

    def _of_tokens(self, query: Mapping[str, str], keys: Keys | None, deadline: Deadline) -> Keys:
        """Return keys that the service for tokens gives, by a request that is signed if there are keys."""
        region = self._settings.get("region") or "us-east-1"
        base = os.environ.get("AWS_ENDPOINT_URL_STS") or f"https://sts.{region}.amazonaws.com"
        target, headers = "/?" + escaped_query(query), {"Host": urlsplit(base).netloc}
        if keys:
            pair = (keys.access, keys.secret)
            headers = signed_headers("GET", target, headers, pair, keys.token, region, datetime.now(UTC), "sts")
        body = _ask(base.rstrip("/") + target, headers, deadline).decode("utf-8", "replace")
        found = {name: re.search(f"<{name}>([^<>]+)</{name}>", body) for name in _OF_TOKENS}
        return _keys_of({ours: match[1] for name, ours in _OF_TOKENS.items() if (match := found[name])})


_OF_TOKENS = {name: name for name in ("AccessKeyId", "SecretAccessKey", "Expiration")} | {"SessionToken": "Token"}


def _given(settings: Settings) -> Keys | None:
    """Return the keys that options, the environment or a profile say."""
    access, secret = settings.get("access_key"), settings.get("secret_key")
    return Keys(access, secret, settings.get("session_token")) if access and secret else None


def _of_process(settings: Settings, deadline: Deadline) -> Keys | None:
    """Return the keys that a command prints, which a profile names for this."""
    command = settings.get("credential_process")
    if not command:
        return None
    try:
        ended = run_process(shlex.split(command), deadline.left())
    except (OSError, ValueError):
        raise NotServed(errno.EACCES, "no credentials: credential_process of the profile gives none") from None
    return _of_json(ended.stdout.encode())


def _of_json(body: bytes) -> Keys:
    """Return the keys that are told as JSON."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    return _keys_of(found if isinstance(found, dict) else {})


def _keys_of(found: Mapping[str, Any]) -> Keys:
    """Return the keys among what a service of credentials told."""
    access, secret = found.get("AccessKeyId"), found.get("SecretAccessKey")
    token = found.get("Token") or found.get("SessionToken")
    if not (isinstance(access, str) and isinstance(secret, str) and (token is None or isinstance(token, str))):
        raise NotServed(errno.EACCES, "no credentials: who should give them answers with none")
    try:
        expires = datetime.fromisoformat(str(found["Expiration"])).timestamp()
    except (KeyError, ValueError, OverflowError):
        expires = time.time() + 2 * _SPARE_SECONDS
    return Keys(access, secret, token, expires)


def _ask(url: str, headers: Mapping[str, str], deadline: Deadline, method: str = "GET") -> bytes:
    """Ask a service of credentials; only an answer with status 200 is one."""
    parts = urlsplit(url)
    connection = connect(parts.netloc, _tls() if parts.scheme == "https" else None, deadline)
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        answer = connection.exchange(method, target, {"Host": parts.netloc, **headers}, deadline)
        if answer.status != 200:
            raise NotServed(errno.EACCES, f"no credentials: who should give them answers HTTP {answer.status}")
        return answer.read(_ANSWER_BYTES, deadline)
    finally:
        connection.close()


@functools.cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _file_text(path: str) -> str:
    """Return what a file of a token holds."""
    try:
        with open(path, encoding="ascii") as file:
            return file.read(_ANSWER_BYTES).strip()
    except (OSError, UnicodeError):
        raise NotServed(errno.EACCES, "no credentials: the file of a token cannot be read") from None
