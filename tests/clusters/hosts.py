"""Machines of the test's own on this one: each has its network, processes, /tmp and SSH server.

Linux namespaces, made as root. Ending a host ends everything that ran on it, as a machine does that
loses its power; what is made is taken away again at the end.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IP = shutil.which("ip") or "ip"
NEEDS = ("ip", "unshare", "rsync", "ssh", "ssh-keygen", "/usr/sbin/sshd")
SSHD = """\
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
MaxStartups 100
"""


def missing() -> str:
    """Why there can be no hosts here, "" when there can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "hosts of our own are made by root on Linux"
    absent = [name for name in NEEDS if shutil.which(name) is None]
    return f"{', '.join(absent)} not installed (openssh-server, rsync, iproute2)" if absent else ""


def call(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)


def own(place: Path, instead: Path, folder: Path) -> Iterator[str]:
    """The commands that put a host's own folder at `place`, with what it must find there still."""
    for path in {ROOT, Path(sys.prefix), Path(sys.base_prefix), folder}:
        if path.is_relative_to(place):
            inner = instead / path.relative_to(place)
            yield f"mkdir -p {inner} && mount --bind {path} {inner}"
    yield f"mount --rbind {instead} {place}"


class Host:
    """One machine: its address, and the process whose end is its end."""

    def __init__(self, name: str, address: str, folder: Path, network: Network) -> None:
        self.name, self.address = name, address
        self.home = folder / name
        for part in ("tmp", "home"):
            (self.home / part).mkdir(parents=True)
        (self.home / "sshd_config").write_text(SSHD.format(folder=folder))
        network.attach(name, address)
        sshd = f"mkdir -p /run/sshd && exec /usr/sbin/sshd -D -e -f {self.home}/sshd_config"
        home = own(Path("/root"), self.home / "home", folder)  # ssh asks passwd, not HOME
        tmp = own(Path("/tmp"), self.home / "tmp", folder)  # noqa: S108 Ray's sockets and logs
        start = " && ".join([*home, *tmp, sshd])
        inside = ["unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child=SIGKILL"]
        with (self.home / "log").open("wb") as log:
            command = [IP, "netns", "exec", name, *inside, "sh", "-c", start]
            self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)

    def wait_up(self, within: float = 30.0) -> None:
        until = time.monotonic() + within
        while True:
            with contextlib.suppress(OSError), socket.create_connection((self.address, 22), 1):
                return
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"{self.name}: no SSH: {(self.home / 'log').read_text()}")
            time.sleep(0.05)

    def lose(self) -> None:
        """The machine is gone, with all that ran on it."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)


class Network:
    """A bridge on this machine, and the hosts behind it."""

    def __init__(self, number: int) -> None:
        self.name = f"trdl{number}"
        self.prefix = f"10.213.{number}"
        self._named: list[str] = []
        call("ip", "link", "add", self.name, "type", "bridge")
        call("ip", "addr", "add", f"{self.prefix}.1/24", "dev", self.name)
        call("ip", "link", "set", self.name, "up")

    def attach(self, name: str, address: str) -> None:
        call("ip", "netns", "add", name)
        self._named.append(name)
        outer = f"{self.name}-{len(self._named)}"
        call("ip", "link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", name)
        call("ip", "link", "set", outer, "master", self.name, "up")
        within = ("ip", "-n", name)
        call(*within, "addr", "add", f"{address}/24", "dev", "eth0")
        call(*within, "link", "set", "lo", "up")
        call(*within, "link", "set", "eth0", "up")
        call(*within, "route", "add", "default", "via", f"{self.prefix}.1")

    def close(self) -> None:
        for name in self._named:
            call("ip", "netns", "delete", name)
        call("ip", "link", "delete", self.name)


@contextlib.contextmanager
def hosts(count: int, folder: Path) -> Iterator[list[Host]]:
    """So many machines that this one reaches by SSH as root with `folder/key`."""
    for name in ("host_key", "key"):
        call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name))
    network = Network(os.getpid() % 250)
    made: list[Host] = []
    try:
        for number in range(count):
            address = f"{network.prefix}.{10 + number}"
            made.append(Host(f"{network.name}n{number}", address, folder, network))
        for host in made:
            host.wait_up()
        yield made
    finally:
        for host in made:
            host.lose()
        network.close()
