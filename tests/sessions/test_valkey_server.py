from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError
from redis.retry import Retry

from sessions.valkey_server import EmbeddedValkey, ValkeyOptions, configured_url
from turns.errors import UnavailableError


def test_a_server_starts_answers_and_goes_with_all_it_made() -> None:
    server = EmbeddedValkey()
    url = server.start()
    family = [psutil.Process(server.pid), *psutil.Process(server.pid).children()]
    directory = Path(url.removeprefix("unix://")).parent
    with Redis.from_url(url) as client:
        assert client.ping()
        config = client.config_get("maxmemory*")
    assert config["maxmemory-policy"] == "volatile-lru"
    assert config["maxmemory"] == str(512 * 2**20)
    assert server.running()
    server.stop()
    assert not server.running()
    assert not directory.exists()
    assert psutil.wait_procs(family, timeout=10)[1] == []
    server.stop()


def test_what_was_kept_is_there_after_a_kill(tmp_path: Path) -> None:
    server = EmbeddedValkey(tmp_path)
    with Redis.from_url(server.start()) as client:
        client.set("k", "v")
    os.kill(server.pid, signal.SIGKILL)
    server.stop()
    again = EmbeddedValkey(tmp_path)
    with Redis.from_url(again.start()) as client:
        assert client.get("k") == b"v"
    again.stop()


def test_a_free_port_with_a_password_of_any_characters() -> None:
    server = EmbeddedValkey(options=ValkeyOptions(port=0, password='p w"\\#:@/', keep=False))
    with Redis.from_url(server.start()) as client:
        assert client.ping()
        address = client.connection_pool.connection_kwargs
    stranger = Redis(host=address["host"], port=address["port"], retry=Retry(NoBackoff(), 0))
    with stranger, pytest.raises(AuthenticationError):
        stranger.ping()
    server.stop()


def test_a_long_directory_gets_a_short_socket(tmp_path: Path) -> None:
    server = EmbeddedValkey(tmp_path / ("long name " * 12))
    with Redis.from_url(server.start()) as client:
        assert client.ping()
    server.stop()


def test_one_server_a_directory(tmp_path: Path) -> None:
    server = EmbeddedValkey(tmp_path)
    server.start()
    with pytest.raises(UnavailableError, match="another server holds"):
        EmbeddedValkey(tmp_path).start()
    assert server.running()
    server.stop()


OWNER = """
import sys
from pathlib import Path
from sessions.valkey_server import EmbeddedValkey
server = EmbeddedValkey(Path(sys.argv[1]))
server.start()
print(server.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("hangs", [False, True], ids=["server well", "server hangs"])
def test_the_server_dies_with_an_owner_that_is_killed(tmp_path: Path, hangs: bool) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    ) as owner:
        assert owner.stdout is not None
        server = psutil.Process(int(owner.stdout.readline()))
        family = [server, *server.children()]
        if hangs:
            server.suspend()
        owner.kill()
    assert psutil.wait_procs(family, timeout=10)[1] == []


def test_a_server_that_does_not_come_up_says_why(tmp_path: Path) -> None:
    (tmp_path / "appendonlydir").write_text("in the way")
    server = EmbeddedValkey(tmp_path)
    with pytest.raises(UnavailableError, match=r"REDIS_URL(.|\n)*appendonlydir"):
        server.start()
    (tmp_path / "appendonlydir").unlink()
    server.start()
    server.stop()


def test_misuse_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="set a password"):
        EmbeddedValkey(options=ValkeyOptions(host="0.0.0.0", port=0))  # noqa: S104 refused here
    server = EmbeddedValkey(tmp_path)
    with pytest.raises(ValueError, match="not started"):
        _ = server.pid
    server.start()
    with pytest.raises(ValueError, match="started already"):
        server.start()
    server.stop()


@pytest.mark.parametrize(
    ("setting", "environ", "url"),
    [
        pytest.param("", {}, "", id="embedded"),
        pytest.param("", {"REDIS_URL": "redis://a"}, "redis://a", id="environment"),
        pytest.param("redis://b", {"REDIS_URL": "redis://a"}, "redis://b", id="setting first"),
    ],
)
def test_which_redis(setting: str, environ: dict[str, str], url: str) -> None:
    assert configured_url(setting, environ) == url
