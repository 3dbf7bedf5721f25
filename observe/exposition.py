"""Exposition: the figures of several processes as one text for Prometheus.

Each process's figures carry its name as the label `process`, so that a counter stays the counter
of one process, whichever of them is asked: sums are the reader's, who can tell a restart apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import DecodeError, Struct, msgpack
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

PROCESS = "process"


class Family(Struct, array_like=True):
    """One metric of one process. A sample is its name, its labels and its value."""

    name: str
    what: str
    kind: str
    samples: list[tuple[str, dict[str, str], float]]


_encode = msgpack.Encoder().encode
_decode = msgpack.Decoder(list[Family]).decode


def snapshot(registry: CollectorRegistry) -> bytes:
    """All figures of a registry, to be told to another process."""
    return _encode(
        [
            Family(
                metric.name,
                metric.documentation,
                metric.type,
                [
                    (sample.name, dict(sample.labels), sample.value)
                    for sample in metric.samples
                    if not sample.name.endswith("_created")
                ],
            )
            for metric in registry.collect()
        ]
    )


def text(snapshots: Mapping[str, bytes]) -> bytes:
    """The figures of all processes, by their names; "" is a process without a name. What cannot be
    read is left out: it is of a process of another version.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Merged(snapshots))
    return generate_latest(registry)


class _Merged(Collector):
    def __init__(self, snapshots: Mapping[str, bytes]) -> None:
        self._snapshots = snapshots

    def collect(self) -> Iterable[Metric]:
        found: dict[str, Metric] = {}
        for process, words in self._snapshots.items():
            own = {PROCESS: process} if process else {}
            try:
                families = _decode(words)
            except DecodeError:
                continue
            for family in families:
                metric = found.get(family.name)
                if metric is None:
                    metric = Metric(family.name, family.what, family.kind)
                    found[family.name] = metric
                for name, labels, value in family.samples:
                    metric.add_sample(name, labels | own, value)
        return found.values()
