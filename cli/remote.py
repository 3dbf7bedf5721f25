"""A server, asked over HTTP with the standard library alone.

The key of a caller comes from a file or from the environment, never from the command line, where
other users of the machine could read it.
"""

from __future__ import annotations

import functools
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, TypeVar

import click

from cli.output import given

F = TypeVar("F", bound=Callable[..., Any])

URL = "http://127.0.0.1:8000"
TIMEOUT_S = 30.0
REFUSED = 401
KEY, ADMIN_KEY = "TREADLE_API_KEY", "TREADLE_ADMIN_KEY"


class RemoteError(Exception):
    """The server cannot be asked, or refuses; `status` is 0 where nobody answered."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Remote:
    """One server. Every call raises RemoteError with words that say what to do."""

    def __init__(self, url: str, key: str = "", *, variable: str = KEY) -> None:
        """`variable` is where the key is looked for, for those who have none."""
        self.url = url.strip().rstrip("/")
        if not _is_url(self.url):
            raise RemoteError(f"{url!r} is no URL of a server; say for example {URL}")
        self._key = key
        self._variable = variable

    def ask(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        """The JSON that the server answers with; None where it answers with nothing."""
        with self.open(method, path, body, query=query) as answer:
            data = answer.read()
        try:
            return json.loads(data) if data else None
        except ValueError:
            raise RemoteError(f"{self.url}{path} answers with something that is not JSON") from None

    @contextmanager
    def open(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: dict[str, str] | None = None,
        timeout: float = TIMEOUT_S,
        query: Mapping[str, str] | None = None,
    ) -> Iterator[HTTPResponse]:
        """The open answer: a stream is read as it comes. `body` is JSON, or bytes as they are."""
        where = self.url + path + (f"?{urllib.parse.urlencode(query)}" if query else "")
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"content-type": "application/json"} | (headers or {})
        if self._key:
            sent["authorization"] = f"Bearer {self._key}"
        request = urllib.request.Request(where, data, sent, method=method)  # noqa: S310 - see above
        try:
            answer = urllib.request.urlopen(request, timeout=timeout)  # noqa: S310
        except urllib.error.HTTPError as error:
            hint = f"; put the key into {self._variable}" if error.code == REFUSED else ""
            raise RemoteError(f"{_told(error)}{hint} (HTTP {error.code})", error.code) from None
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise RemoteError(
                f"no server at {self.url} ({reason}); start one: treadle serve, or say --url"
            ) from None
        except ValueError:  # its words would repeat a header
            raise RemoteError(f"{where!r} cannot be asked: write it in ASCII") from None
        with answer:
            try:
                yield answer
            except (OSError, HTTPException) as error:
                reason = str(error) or type(error).__name__
                raise RemoteError(f"the answer of {self.url} broke off ({reason})") from None


def _is_url(url: str) -> bool:
    """Whether that names a server, as far as its spelling tells."""
    try:
        parts = urllib.parse.urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _told(error: urllib.error.HTTPError) -> str:
    """What a refusal says, in whichever shape it comes."""
    try:
        text = error.read().decode(errors="replace")
    except (OSError, HTTPException):
        return str(error.reason)
    try:
        found = json.loads(text)
        text = str(found["error"]["message"])
    except (ValueError, KeyError, TypeError):
        text = text[:300] or str(error.reason)
    return text


def key_from(variable: str, file: Path | None) -> str:
    """The key in `file`, else in the environment; "" for none. Raises RemoteError.

    What cannot stand in a header is no key. It is not repeated: most of it may be a real one.
    """
    if file is None:
        key, where = os.environ.get(variable, ""), variable
    else:
        key, where = file.read_bytes().decode("utf-8-sig", "replace"), str(file)
    key = key.strip()
    if not (key.isascii() and key.isprintable()):
        raise RemoteError(
            f"what stands in {where} is no key: one is a single line of printable ASCII; "
            "copy it again"
        )
    return key


def reaches(variable: str = KEY) -> Callable[[F], F]:
    """Gives a command `--url` and `--key-file`, and the server as its argument `remote`."""

    def decorate(command: F) -> F:
        @click.option("--url", "--base-url", default=URL, show_default=True, envvar="TREADLE_URL")
        @click.option(
            "--key-file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help=f"A file with the key; else {variable} is read.",
        )
        @functools.wraps(command)
        def wrapped(out: Any, *arguments: Any, url: str, key_file: Path | None, **rest: Any) -> Any:
            url, key_file = given("url", url), given("key_file", key_file)
            try:
                remote = Remote(url, key_from(variable, key_file), variable=variable)
                return command(out, *arguments, remote=remote, **rest)
            except (RemoteError, OSError) as error:
                raise out.fail(str(error)) from None

        return wrapped  # type: ignore[return-value] # a decorator keeps what it is given

    return decorate
