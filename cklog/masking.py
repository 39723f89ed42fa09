"""Secrets in texts: passwords and keys that URIs carry, and values of options in texts of engines and stores.

What an answer says is masked in URIs alone (`masked`): an operator, a folder or a file may be called `token=abc`, and
two of them must not become one. Texts that quote options come from few places: errors of stores and engines, the
command line, a traceback. These mask by the names of options, too (`masked_options`), where the text comes in.
"""

from __future__ import annotations

import functools
import re

_HIDDEN = "***"
_USER = (
    r"""(://[^/\s:@?#"']*):"""  # a user, then a password, which runs to the last @ before a slash
    r"""(?:[^/\s"]+@|(?!/|\d+(?:\W|$))[^\s"@?#:]+@)"""  # or has slashes, as keys of AWS have, and is no port
)
_NAME = (
    r"(?:secret|pass(?:word|wd|phrase)|token|signature|credential|(?:access|account|private|api|shared)[._-]?key"
    r"|sas|sig|pwd)[a-z0-9_.%-]{0,80}"
)
_OPTION = rf"({_NAME})=(?:\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|[\"']\S*|[^&\s\"']+)"
_URI = r"([a-z][a-z0-9+.-]{0,30})://[^\s\"]*"
_IN_PATH = rf"(;{_NAME})=[^;&?#]+"
_IN_QUERY = rf"([?&;#][a-z0-9_.%-]{{0,40}}?{_NAME})=[^&]+"
_AFTER_SPACE = (
    rf"([?&][a-z0-9_.%-]{{0,40}}?{_NAME})=(?!\*\*\*)"
    r"(?:\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|[^&\s\"']+?(?=:?(?:[&\s\"']|$)))"
)
"""A parameter of a URI whose path has a space or a quote: nobody can tell where such a URI ends."""

_NOT_OF_FILES = r"(?<!file)://"
_PARAMETER = rf"[?&;#][a-z0-9_.%-]{{0,40}}?{_NAME}="
_OF_FILES = frozenset({"file", "s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs", "wasb", "wasbs"})
"""Schemes of places whose paths are names of files: a `;` in them begins no parameter."""

_JAAS = "LoginModule"
_JAAS_ENTRY = r"(?s:LoginModule\s+(?:required|requisite|sufficient|optional)\s.*)"
"""An entry of JAAS: a class, a flag and options. Kafka's passwords are written so."""


def masked(text: str) -> str:
    """Return a text without the secrets of URIs: passwords, and values of a query that are called like a secret.

    It is asked of each text before that is escaped, quoted, laid out or put between others: afterwards nobody can tell
    where a secret ends.

    >>> masked("s3://me:pw@b/x?secret_key=abc&region=x"), masked("sc://h:15002/;token=abc;user_id=me")
    ('s3://me:***@b/x?secret_key=***&region=x', 'sc://h:15002/;token=***;user_id=me')
    >>> masked("s3://me:p/w@b"), masked("hdfs://h:8020/me@x"), masked("s3://b/token=abc/chk-1"), masked("token=abc")
    ('s3://me:***@b', 'hdfs://h:8020/me@x', 's3://b/token=abc/chk-1', 'token=abc')
    >>> masked("s3://b/my dir?secret_key=abc&region=x"), masked("file:///what?token=abc/chk-1")
    ('s3://b/my dir?secret_key=***&region=x', 'file:///what?token=abc/chk-1')
    """
    if "://" in text:
        text = _compiled(_URI).sub(_masked_uri, _compiled(_USER).sub(rf"\1:{_HIDDEN}@", text))
        if found := _compiled(_NOT_OF_FILES).search(text):
            rest = _compiled(_AFTER_SPACE).sub(rf"\1={_HIDDEN}", text[found.end() :])
            text = text[: found.end()] + rest
    return _compiled(_JAAS_ENTRY).sub(_masked_entry, text) if _JAAS in text else text


def masked_options(text: str) -> str:
    """Return a text that quotes options without their secrets, and without those of URIs.

    >>> masked_options('no such setting: fs.s3a.secret.key=a/b'), masked_options('password="a b"')
    ('no such setting: fs.s3a.secret.key=***', 'password=***')
    """
    return _compiled(_OPTION).sub(rf"\1={_HIDDEN}", masked(text)) if "=" in text else masked(text)


def may_hold_secrets(text: str) -> bool:
    """Return whether `masked` might change a part of a text: most have none, and to look for that is fast."""
    return ("://" in text and _has_secret_in_uri(text)) or _JAAS in text


UNSEEN_END = "secrets in a URI have no spaces and no quotes", "write %20 for a space, %22 for a quote"
"""Why a URI is refused of which `hides_secrets_of` is false, and what to do: a text would show a part of the secret."""


def hides_secrets_of(uri: str) -> bool:
    """Return whether `masked` finds where the secrets of a URI end: not if whitespace or a quote may be in one.

    >>> found = ("me:p w@b", "b?secret_key=a b", "b?secret_key=a%20b", "b/a b@c?x=y")
    >>> [hides_secrets_of(f"s3://{rest}") for rest in found]
    [False, False, True, True]
    """
    _, scheme, rest = uri.partition("://")
    user = rest.rpartition("@")[0] if re.match(r"[^/@?#]*:(?!\d+(?:\W|$))", rest) else ""
    end = re.search("[?;#]", rest)
    parameters = "" if end is None or not _has_secret_in_uri(uri) else rest[end.start() :]
    return not scheme or not re.search(r"[\s\"]", user + parameters)


def _has_secret_in_uri(text: str) -> bool:
    return bool(_compiled(_USER).search(text) or _compiled(_PARAMETER).search(text))


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern when a text needs it: most commands print none that does, and start faster."""
    return re.compile(pattern, re.IGNORECASE | re.ASCII)


def _masked_entry(found: re.Match[str]) -> str:
    return _compiled(_OPTION).sub(rf"\1={_HIDDEN}", found[0])


def _masked_uri(found: re.Match[str]) -> str:
    """Return a URI without the secrets among its parameters; one in single quotes ends with them.

    A colon at its end is the sentence's, as in "sc://host/;token=abc: connection refused".
    """
    uri, rest = found[0].removesuffix(":"), ""
    colon = found[0][len(uri) :]
    if found.string[found.start() - 1 : found.start()] == "'":
        uri, quote, rest = uri.partition("'")
        rest = quote + rest
    end = re.search(r"[?#]", uri)
    path, query = (uri, "") if end is None or found[1].lower() == "file" else (uri[: end.start()], uri[end.start() :])
    if found[1].lower() not in _OF_FILES:
        path = _compiled(_IN_PATH).sub(rf"\1={_HIDDEN}", path)
    return path + _compiled(_IN_QUERY).sub(rf"\1={_HIDDEN}", query) + rest + colon
