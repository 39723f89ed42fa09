"""What a hostile server does in place of an answer: by name and by what was asked, with the exit code of a command."""

from __future__ import annotations

import gzip
import itertools
import socket
import struct
from collections.abc import Callable

from tests.integration.stores.hostile import PREFIX, Asked, Behaviour, Line, contents, page

ERROR = b"<Error><Code>%s</Code><Message>%s</Message></Error>"
KEY = f"{PREFIX}/channels/a.jsonl"


def raw(data: bytes) -> Behaviour:
    """Send bytes that are no honest answer, and close."""

    def behave(asked: Asked, line: Line) -> None:
        line.send(data)
        line.sock.shutdown(socket.SHUT_RDWR)

    return behave


def then_hang(data: bytes) -> Behaviour:
    """Send bytes, and leave the connection open."""

    def behave(asked: Asked, line: Line) -> None:
        line.send(data)
        line.hang()

    return behave


def slow(data: bytes, first: bytes = b"") -> Behaviour:
    """Send a beginning at once, and the rest a byte at a time, without an end."""

    def behave(asked: Asked, line: Line) -> None:
        line.send(first)
        while not line.server.given_up.is_set():
            line.slowly(data)

    return behave


def endless(data: bytes, first: bytes = b"") -> Behaviour:
    """Send the same again and again."""

    def behave(asked: Asked, line: Line) -> None:
        line.send(first)
        line.endlessly(data)

    return behave


def status(text: str, body: bytes = b"", **headers: str) -> Behaviour:
    """Answer with a status."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda asked, line: line.answer(text, named, body)


def reset(first: bytes = b"") -> Behaviour:
    """Send a beginning, and reset the connection."""

    def behave(asked: Asked, line: Line) -> None:
        line.send(first)
        line.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise ConnectionAbortedError  # whoever serves the connection closes it

    return behave


def redirect(code: int, place: Callable[[Line], str]) -> Behaviour:
    """Redirect."""

    def behave(asked: Asked, line: Line) -> None:
        line.answer(f"{code} Elsewhere", {"Location": place(line), "x-amz-bucket-region": "evil.example/"})

    return behave


def elsewhere(line: Line) -> str:
    """Another port of the same host."""
    return f"http://127.0.0.1:{line.server.elsewhere_port}/evidence/{PREFIX}"


def itself(line: Line) -> str:
    """The same place again."""
    return f"http://127.0.0.1:{line.server.port}/evidence/{PREFIX}"


def echo(where: str) -> Behaviour:
    """Send what was sent, as a code and a message, in headers, or in the status line."""

    def behave(asked: Asked, line: Line) -> None:
        sent = asked.headers["authorization"]
        token, signature = asked.headers["x-amz-security-token"], sent.rpartition("=")[2]
        if where == "body":
            line.answer("403 Forbidden", body=ERROR % (token.encode(), f"{sent} {token} {signature}".encode()))
        elif where == "upper":
            line.answer("400 Bad", body=(ERROR % (token.encode(), sent.encode())).upper())
        elif where == "headers":
            line.answer("301 Moved", {"x-amz-bucket-region": signature, "Location": sent, "ETag": token})
        elif where == "range":
            line.answer("206 Partial", {"Content-Range": f"bytes {token}", "ETag": signature})
        else:
            line.answer(f"500 {sent} {token}")

    return behave


def part(
    make: Callable[[int, int, int], dict[str, str]], body: Callable[[bytes], bytes] = lambda data: data
) -> Behaviour:
    """Answer a range with headers of (first byte, one after the last, size), and a body of the right one."""

    def behave(asked: Asked, line: Line) -> None:
        data = line.server.objects[asked.key]
        start, end = asked.range
        sent = body(data[start:end])
        line.head("206 Partial", {"Content-Length": str(len(sent)), **make(start, end, len(data))})
        line.send(sent)
        line.sock.shutdown(socket.SHUT_WR)

    return behave


def right(start: int, end: int, size: int) -> dict[str, str]:
    """The header that an honest answer has."""
    return {"Content-Range": f"bytes {start}-{end - 1}/{size}"}


def ranged(text: str) -> Behaviour:
    """Answer with a `Content-Range` of this form."""
    return part(lambda start, end, size: {"Content-Range": text.format(start=start, end=end, size=size, last=end - 1)})


def dribbled(asked: Asked, line: Line) -> None:
    """Answer honestly, a byte at a time."""
    data = line.server.objects[asked.key]
    line.head("206 Partial", {"Content-Length": str(asked.range[1] - asked.range[0]), **right(*asked.range, len(data))})
    line.slowly(data[slice(*asked.range)])


def in_chunks(asked: Asked, line: Line) -> None:
    """Answer the right range, and more and more after it."""
    size = len(line.server.objects[asked.key])
    line.head("206 Partial", {"Transfer-Encoding": "chunked", **right(*asked.range, size)})
    line.endlessly(b"400\r\n" + b"a" * 1024 + b"\r\n")


def retagged() -> Behaviour:
    """Answer each try in two, of two objects."""
    numbers = itertools.count()

    def behave(asked: Asked, line: Line) -> None:
        data = line.server.objects[asked.key]
        start, end = asked.range
        line.head(
            "206 Partial",
            {"Content-Length": str(end - start), "ETag": f'"{next(numbers)}"', **right(start, end, len(data))},
        )
        line.send(data[start : (start + end) // 2])
        line.sock.shutdown(socket.SHUT_RDWR)

    return behave


def listing(make: Callable[[Asked], bytes]) -> Behaviour:
    """Answer a listing with a body."""
    return lambda asked, line: line.answer("200 OK", body=make(asked))


def fixed(*objects: str) -> Behaviour:
    """List these."""
    return listing(lambda asked: page(list(objects)))


def forever(names: int) -> Behaviour:
    """List so many new names on each page, which never is the last."""
    numbers = itertools.count()

    def make(asked: Asked) -> bytes:
        found = [contents(f"{PREFIX}/checkpoints/{next(numbers):012}.jsonl", "9") for _ in range(names)]
        return page(found, f"token-{next(numbers)}")

    return listing(make)


def echoed_name(asked: Asked) -> bytes:
    """List an object that is named like the token."""
    return page([contents(f"{PREFIX}/checkpoints/{asked.headers['x-amz-security-token']}.jsonl", "9")])


BOMB = (
    b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;">'
    b"]><ListBucketResult><IsTruncated>&c;&c;&c;</IsTruncated></ListBucketResult>"
)
OUTSIDE = (
    b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><ListBucketResult><Contents><Key>&a;</Key>'
    b"<Size>1</Size></Contents></ListBucketResult>"
)
OK = b"HTTP/1.1 200 OK\r\n"

_OF_ALL: dict[str, Behaviour] = {
    "silence": then_hang(b""),
    "slow status line": slow(b"HTTP/1.1 200 OK" + b"K" * 1000),
    "slow headers": slow(b"x-a: b\r\n", OK),
    "slow error body": slow(b"<Error>", b"HTTP/1.1 500 Error\r\nContent-Length: 60000\r\n\r\n"),
    "slow refusal body": slow(b"<Error>", b"HTTP/1.1 403 Forbidden\r\nContent-Length: 60000\r\n\r\n"),
    "100 Continue, endless": endless(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "100 Continue, slow": slow(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a header without an end": endless(b"a" * 4096, OK + b"x: "),
    "headers without an end": endless(b"x-a: b\r\n" * 100, OK),
    "thousands of headers": raw(OK + b"x-a: b\r\n" * 9000 + b"Content-Length: 0\r\n\r\n"),
    "chunks without an end": endless(b"5\r\nabcde\r\n", OK + b"Transfer-Encoding: chunked\r\n\r\n"),
    "a chunk of a negative size": raw(OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\nabc\r\n0\r\n\r\n"),
    "a chunk of size -1": raw(OK + b"Transfer-Encoding: chunked\r\n\r\n-1\r\nabc\r\n0\r\n\r\n"),
    "a chunk size that is no number": raw(OK + b"Transfer-Encoding: chunked\r\n\r\nmany\r\nabc\r\n0\r\n\r\n"),
    "a chunk size without an end": endless(b"0", OK + b"Transfer-Encoding: chunked\r\n\r\n"),
    "negative length": then_hang(OK + b"Content-Length: -5\r\n\r\n"),
    "length that is no number": then_hang(OK + b"Content-Length: many\r\n\r\n"),
    "two lengths": then_hang(OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde"),
    "length without a body": then_hang(OK + b"Content-Length: 50\r\n\r\n"),
    "closed at once": raw(b""),
    "closed in the head": raw(OK + b"Content-"),
    "reset at once": reset(),
    "reset in the head": reset(OK + b"Content-"),
    "reset in the body": reset(OK + b"Content-Length: 500\r\n\r\nabc"),
    "HTTP/0.9": raw(b"<html>welcome</html>\n"),
    "status line of garbage": raw(bytes(range(128, 256)) * 3 + b"\r\n\r\n"),
    "status that is no number": raw(b"HTTP/1.1 abc Yes\r\n\r\n"),
    "another protocol": raw(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "500 forever": status("500 Error", ERROR % (b"InternalError", b"again")),
    "503 SlowDown forever": status("503 Slow", ERROR % (b"SlowDown", b"reduce")),
    "429, again in an hour": status("429 Many", Retry_After="3600"),
    "403": status("403 Forbidden", ERROR % (b"AccessDenied", b"no")),
    "404": status("404 Not Found", ERROR % (b"NoSuchKey", b"no")),
    "401 with a demand": status("401 Unauthorized", WWW_Authenticate='Basic realm="give me your keys"'),
    "416": status("416 Range", ERROR % (b"InvalidRange", b"no")),
    "304": status("304 Not Modified"),
    "204": status("204 No Content"),
    "clock": status("403 Forbidden", ERROR % (b"RequestTimeTooSkewed", b"late")),
    **{f"{code} to another port": redirect(code, elsewhere) for code in (301, 302, 303, 307, 308)},
    "307 to itself": redirect(307, itself),
    "307 to another host": redirect(307, lambda line: f"http://localhost:{line.server.elsewhere_port}/"),
    "307 to nowhere": redirect(307, lambda line: "gopher://%00/"),
    "echo in the body": echo("body"),
    "echo in capitals": echo("upper"),
    "echo in headers": echo("headers"),
    "echo in the status line": echo("status"),
}
_OF_RANGES: dict[str, Behaviour] = {
    "slow body": dribbled,
    "range with another start": ranged("bytes 1-{end}/{size}"),
    "range with another end": ranged("bytes {start}-{end}/{size}"),
    "range of another total": ranged("bytes {start}-{last}/99999"),
    "range of no total": ranged("bytes {start}-{last}/*"),
    "range that is none": ranged("bytes */{size}"),
    "range in other units": ranged("lines {start}-{last}/{size}"),
    "no range": part(lambda start, end, size: {}),
    "body too long": part(right, lambda data: data + b"more"),
    "body too short": part(right, lambda data: data[:-1]),
    "body too long in chunks": in_chunks,
    "trailers without an end": endless(b"x: y\r\n", OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n"),
    "gzip that nobody wanted": part(lambda *at: {"Content-Encoding": "gzip", **right(*at)}, gzip.compress),
    "another whole object": status("200 OK", b"something else"),
    "echo in the range": echo("range"),
    "another object at each try": retagged(),
}
_OF_LISTINGS: dict[str, Behaviour] = {
    "the same token again": listing(
        lambda asked: page([contents(KEY, "9")] if not asked.query.get("continuation-token") else [], "same")
    ),
    "empty pages without an end": forever(0),
    "pages of one name without an end": forever(1),
    "full pages of new names without an end": forever(1000),
    "more without a token": listing(lambda asked: page([contents(KEY, "9")], truncated=True)),
    "negative size": fixed(contents(KEY, "-1")),
    "size that is no number": fixed(contents(KEY, "many")),
    "size beyond all stores": fixed(contents(KEY, "9" * 40)),
    "no size": fixed(f"<Contents><Key>{KEY}</Key></Contents>"),
    "no name": fixed("<Contents><Size>1</Size></Contents>"),
    "two sizes": fixed(contents(KEY, "1", "<Size>2</Size>")),
    "name outside the prefix": fixed(contents("other/a.jsonl", "9")),
    "name twice": fixed(contents(KEY, "9"), contents(KEY, "8")),
    "name of a megabyte": fixed(contents(f"{PREFIX}/" + "a" * (1 << 20), "9")),
    "name of two kilobytes": fixed(contents(f"{PREFIX}/" + "a" * 2000, "9")),
    "name that is no UTF-8": listing(
        lambda asked: page([f"<Contents><Key>{PREFIX}/%ff</Key><Size>1</Size></Contents>"])
    ),
    "name that is the token": listing(echoed_name),
    "more names than wanted": fixed(*(contents(f"{PREFIX}/{i}", "1") for i in range(1001))),
    "entities that grow": listing(lambda asked: BOMB),
    "entities of other files": listing(lambda asked: OUTSIDE),
    "nested without an end": listing(lambda asked: b"<ListBucketResult>" + b"<a>" * 100_000),
    "not XML": listing(lambda asked: b"<ListBucketResult><Contents>"),
    "another root": listing(lambda asked: ERROR % (b"AccessDenied", b"no")),
    "HTML": listing(lambda asked: b"<html><body>Sign in</body></html>"),
    "nothing": listing(lambda asked: b""),
    "a page of 100 MB": then_hang(OK + b"Content-Length: 100000000\r\n\r\n"),
}

BEHAVIOURS: dict[tuple[str, str], tuple[Behaviour, int]] = {
    **{(name, "GET"): (behave, 5) for name, behave in {**_OF_ALL, **_OF_RANGES}.items()},
    **{(name, "LIST"): (behave, 66) for name, behave in {**_OF_ALL, **_OF_LISTINGS}.items()},
}
"""By name and by what is asked: what is done, and the exit code that it leads to."""
