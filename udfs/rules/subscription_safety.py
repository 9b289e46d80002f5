"""Whether a change of subscriptions could harm a live client (KIP-714): bugs of its library."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from quotaflow.schemas.metrics import JAVA, LIBRDKAFKA, METRICS, PREFIX
from quotaflow.udfs.rules.client_metrics import ALL, Client, Subscription, effective

_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_Version = tuple[int, ...]
# librdkafka #4833, fixed in 2.5.3; #5106 and #4912, fixed in 2.10.1. Telemetry came with 2.5.0.
_CRASHES_FROM, _CRASHES_BEFORE, _DISCONNECTS_BEFORE = (2, 5, 0), (2, 5, 3), (2, 10, 1)
KINDS = ("producer", "consumer")
_BY_KIND = {
    kind: tuple(
        name
        for name, metric in METRICS.items()
        if LIBRDKAFKA in metric.clients and name.startswith(f"{PREFIX}{kind}.")
    )
    for kind in KINDS
}


@dataclass(frozen=True, slots=True)
class LiveClient:
    """A client that runs now; `kind` is producer or consumer, if its metrics show which."""

    client: Client
    kind: str | None = None


def harm(
    before: Iterable[Subscription], after: Iterable[Subscription], live: LiveClient
) -> str | None:
    """Why a change from one set of resources to another could harm this client; None: it cannot.

    librdkafka before 2.5.3 crashes, and before 2.10.1 is disconnected at every push, when it is
    asked for metrics and has none of them. Harm that existed before is not counted.
    """
    metrics, _ = effective(after, live.client)
    version = _librdkafka(live.client)
    if version is None or not metrics or metrics == effective(before, live.client)[0]:
        return None
    missing = [kind for kind in KINDS if live.kind in {kind, None} and not _has(kind, metrics)]
    if not missing:
        return None
    does = _does(version)
    version_text = live.client.client_software_version or "of unknown version"
    return does and (
        f"{live.client.client_software_name} {version_text} {does} when it is asked for metrics "
        f"and has none of them, as a {missing[0]} has none of {', '.join(sorted(metrics))}"
    )


def _librdkafka(client: Client) -> _Version | None:
    """The version of librdkafka in a client, () if unknown; None for other software.

    Wrappers of librdkafka have a name of their own, and give librdkafka's version last.
    """
    name = (client.client_software_name or "").lower()
    text = client.client_software_version or ""
    if name == JAVA or not ("rdkafka" in f"{name} {text}".lower() or name.startswith("confluent")):
        return None
    versions = _VERSION.findall(text)
    return tuple(map(int, versions[-1])) if versions else ()


def _does(version: _Version) -> str | None:
    if not version or _CRASHES_FROM <= version < _CRASHES_BEFORE:
        return "crashes"
    return "is disconnected" if _CRASHES_FROM <= version < _DISCONNECTS_BEFORE else None


def _has(kind: str, metrics: Iterable[str]) -> bool:
    prefixes = tuple(metrics)
    return ALL in prefixes or any(name.startswith(prefixes) for name in _BY_KIND[kind])
