"""Options of object stores: those of `--store K=V`, and beside them what the environment and AWS's own files say.

What was said on the command line, or in the URI, goes before the environment, and that before a profile. The driver of
a scan looks at its environment once; whoever reads elsewhere is given what was found.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from cklog.errors import UsageError
from cklog.masking import UNSEEN_END, hides_secrets_of, masked_options

KEYS: Mapping[str, tuple[str, ...]] = {
    "s3": (
        *("endpoint", "region", "scheme", "profile", "anonymous", "access_key", "secret_key", "session_token"),
        *("role_arn", "external_id", "timeout"),
    ),
    "gs": ("endpoint", "scheme", "anonymous", "project", "service_account", "timeout"),
    "abfss": (
        *("endpoint", "scheme", "account", "account_key", "sas_token", "tenant_id", "client_id", "client_secret"),
        "timeout",
    ),
    "hdfs": ("timeout",),
}
"""What may be said of each kind of store."""

SECRETS = frozenset(
    {"access_key", "secret_key", "session_token", "account_key", "sas_token", "client_secret", "external_id"}
)
"""Keys whose values are never shown."""

_KEYS_FROM = {
    "sso_session": "AWS SSO",
    "sso_start_url": "AWS SSO",
    "login_session": "`aws login`",
    "role_arn": "a role",
}
"""Where AWS's tools get the keys of a profile with such an entry; cklog does not ask there."""

_ALIKE = {"gcs": "gs", "abfs": "abfss", "viewfs": "hdfs", "s3a": "s3", "s3n": "s3"}
_ENVIRONMENT: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "s3": {
        "endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
        "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
        "profile": ("AWS_PROFILE",),
        "access_key": ("AWS_ACCESS_KEY_ID",),
        "secret_key": ("AWS_SECRET_ACCESS_KEY",),
        "session_token": ("AWS_SESSION_TOKEN",),
    },
    "gs": {"endpoint": ("STORAGE_EMULATOR_HOST",), "project": ("GOOGLE_CLOUD_PROJECT",)},
    "abfss": {
        "account": ("AZURE_STORAGE_ACCOUNT",),
        "account_key": ("AZURE_STORAGE_KEY",),
        "sas_token": ("AZURE_STORAGE_SAS_TOKEN",),
    },
}
_IN_URIS = {"endpoint_override": "endpoint"}
_WHO = frozenset(
    {"access_key", "secret_key", "session_token", "profile", "anonymous", "role_arn", "account_key", "sas_token"}
)
"""Options that say as whom a store is asked."""

_SIGNED = re.compile(r"(?i)((?:signature|credential|sig|bearer|security-token)[=: ]+)[^\s&,;<>'\"]+")
_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")
TIMEOUT_SECONDS, LISTING_SECONDS = 10.0, 120.0
"""Where `--store timeout=` is not given: what a request may take, and the listing of a place in S3."""


def kind_of_store(uri: str) -> str:
    """Return what kind of store a URI leads to, by its scheme.

    >>> kind_of_store("s3a://b/x"), kind_of_store("abfs://c@a.dfs.core.windows.net/x")
    ('s3', 'abfss')
    """
    scheme = uri.partition("://")[0]
    return _ALIKE.get(scheme, scheme)


def parse_store(given: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Check options of stores, whatever kind of store they are for.

    Raises
    ------
    UsageError : there is no such option, or its value is none of its own; a value is not repeated in the message

    >>> parse_store([("region", "eu-central-1")])
    (('region', 'eu-central-1'),)
    """
    known = dict.fromkeys(key for keys in KEYS.values() for key in keys)
    options = tuple(given)
    for key, value in options:
        if key not in known:
            raise UsageError(f"--store {key}: no such option", f"there are {', '.join(known)}")
        if key == "anonymous" and value.lower() not in (*_TRUE, *_FALSE):
            raise UsageError("--store anonymous: true or false")
        if key == "timeout" and not _is_seconds(value):
            raise UsageError("--store timeout: seconds, more than 0")
        if key == "scheme" and value not in ("http", "https"):
            raise UsageError("--store scheme: http or https")
    return options


def _is_seconds(text: str) -> bool:
    try:
        return 0 < float(text) < 86_400
    except ValueError:
        return False


@dataclass(frozen=True)
class Settings:
    """All that is known of how a store is reached; `values` are never printed."""

    kind: str
    values: Mapping[str, str] = field(repr=False)

    def get(self, key: str) -> str | None:
        """Return a value, None if nothing says it."""
        return self.values.get(key) or None

    @property
    def anonymous(self) -> bool:
        """Whether no credential is used."""
        return (self.get("anonymous") or "").lower() in _TRUE

    @property
    def timeout(self) -> float:
        """The seconds that a request may take, with all its tries."""
        return float(self.get("timeout") or TIMEOUT_SECONDS)

    @property
    def listing_timeout(self) -> float:
        """The seconds that all requests of one listing may take together."""
        return float(self.get("timeout") or LISTING_SECONDS)

    @property
    def scheme(self) -> str:
        """`http` or `https`."""
        return self.get("scheme") or urlsplit(self.get("endpoint") or "").scheme or "https"

    @property
    def endpoint(self) -> str:
        """Host and port, "" for the store's own."""
        told = self.get("endpoint") or ""
        return (told.partition("://")[2] if "://" in told else told).rstrip("/")

    def hidden(self, text: str) -> str:
        """Return a text without these secrets, also in capitals or escaped, without signatures and quoted secrets."""
        for secret in self._secrets():
            for form in {secret, quote(secret, safe="")}:
                text = re.sub(re.escape(form), "***", text, flags=re.IGNORECASE)
        return masked_options(_SIGNED.sub(r"\1***", text))

    def _secrets(self) -> list[str]:
        """Return the secrets among the values."""
        return [self.values[key] for key in sorted(SECRETS & self.values.keys()) if self.values[key]]


def settings_of(uri: str, given: Mapping[str, str], environment: Mapping[str, str]) -> Settings:
    """Put together what is known of the store that a URI leads to.

    Raises
    ------
    UsageError : an option that stores of this kind do not have

    >>> found = settings_of("s3://b?region=x", {"endpoint": "http://h:9"}, {"AWS_REGION": "y"})
    >>> found.get("region"), found.endpoint, found.scheme
    ('x', 'h:9', 'http')
    """
    kind = kind_of_store(uri)
    known = KEYS.get(kind, ())
    for key in given:
        if key not in known:
            raise UsageError(f"--store {key}: {kind}:// has no such option", f"it has {', '.join(known)}")
    values: dict[str, str] = {}
    for name, found in _ENVIRONMENT.get(kind, {}).items():
        told = next((environment[one] for one in found if environment.get(one)), None)
        if told is not None:
            values.setdefault(name, told)
    said = {**given, **_in_uri(uri, known)}
    if said.keys() & _WHO:  # one credential is not mixed with another's parts
        values = {key: value for key, value in values.items() if key not in _WHO}
    values |= said
    return Settings(kind, _with_profile(values, environment) if kind == "s3" else values)


def captured_environment() -> dict[str, str]:
    """Return what of this process's environment says how stores are reached."""
    names = {name for kind in _ENVIRONMENT.values() for those in kind.values() for name in those}
    names |= {"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"}
    return {name: os.environ[name] for name in sorted(names) if os.environ.get(name)}


def _in_uri(uri: str, known: tuple[str, ...]) -> dict[str, str]:
    """Return the options that a URI itself says: in its query, and as user and password of s3."""
    if not hides_secrets_of(uri):
        raise UsageError(*UNSEEN_END)
    bare, _, query = uri.partition("?")
    found = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        name = _IN_URIS.get(key, key)
        if "@" in key:  # a part of a password
            raise UsageError("a user and password in a URI have no ?", "write %3F for it")
        if name not in known:
            raise UsageError(f"?{key}=: no such option of {kind_of_store(uri)}://", f"it has {', '.join(known)}")
        found[name] = value
    user, at, _ = bare.partition("://")[2].partition("/")[0].rpartition("@")
    if at and kind_of_store(uri) == "s3" and ":" in user:
        name, _, password = user.partition(":")
        found |= {"access_key": unquote(name), "secret_key": unquote(password)}
    if at and kind_of_store(uri) == "gs" and user == "anonymous":
        found["anonymous"] = "true"
    return found


def _with_profile(values: dict[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Add what a profile of AWS's own files says, of what nothing else says."""
    import configparser  # only where there is a store to reach

    name = values.get("profile") or "default"
    home = os.path.expanduser("~/.aws")
    files = (
        (environment.get("AWS_CONFIG_FILE") or os.path.join(home, "config"), f"profile {name}"),
        (environment.get("AWS_SHARED_CREDENTIALS_FILE") or os.path.join(home, "credentials"), name),
    )
    found: dict[str, str] = {}
    for path, section in files:
        parsed = configparser.RawConfigParser()
        try:
            parsed.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError, OSError):
            continue
        for one in (section, name):
            if parsed.has_section(one):
                found |= dict(parsed.items(one))
    if values.get("profile") and not found:
        raise UsageError(f"profile {name}: AWS's configuration has none of this name", f"looked for it in {home}")
    found["keys_from"] = next((source for entry, source in _KEYS_FROM.items() if found.get(entry)), "")
    told = {"region": "region", "endpoint": "endpoint_url"}
    if not values.keys() & {"access_key", "anonymous", "role_arn"}:
        told |= {"access_key": "aws_access_key_id", "secret_key": "aws_secret_access_key"}
        told |= {"session_token": "aws_session_token", "credential_process": "credential_process"}
        told |= {"keys_from": "keys_from"}
    return {key: found[theirs] for key, theirs in told.items() if found.get(theirs)} | values
