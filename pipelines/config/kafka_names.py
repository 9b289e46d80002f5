"""The names of Kafka's client properties, to hint at the right one where conf has a typo."""

import difflib
from importlib.resources import files

KAFKA_PROPERTIES = frozenset(
    (files("quotaflow.pipelines.config") / "kafka_properties.txt").read_text("utf-8").split()
)
"""Of consumers, producers and admin clients of Kafka 4.3: `configNames()` of their classes."""

_OURS = frozenset(
    {
        *("sasl.username", "sasl.password", "sasl.kerberos.principal", "sasl.kerberos.keytab"),
        *("sasl.oauthbearer.method", "sasl.oauthbearer.client.id", "sasl.oauthbearer.scope"),
        *("sasl.oauthbearer.client.secret", "sasl.oauthbearer.extensions"),
    }
)
"""Names of librdkafka that logins take (`logins.py`)."""
_NEAR = 0.85
_FIRST = frozenset(name.partition(".")[0] for name in KAFKA_PROPERTIES | _OURS) | {"https"}


def property_of(name: str) -> str | None:
    """The property that a name is, if its letters are made small and each _ a dot."""
    written = _written(name)
    return written if written in KAFKA_PROPERTIES | _OURS else None


def near(name: str) -> str | None:
    """The property that an unknown name is a typo of; None for a name of its own.

    Clients may have properties that Kafka's own classes lack.
    """
    if name in KAFKA_PROPERTIES | _OURS:
        return None
    matches = difflib.get_close_matches(
        _written(name), sorted(KAFKA_PROPERTIES | _OURS), n=1, cutoff=_NEAR
    )
    return matches[0] if matches else None


def unread(name: str) -> str | None:
    """What is wrong with a name whose first word is of no property of any client; None for others.

    Nothing reads it: no client loads a plug-in here.
    """
    first, dot, rest = name.partition(".")
    if not dot or first in _FIRST or near(name):
        return None
    if first == "databricks":
        return f"nothing reads {name} here (did you mean kafka.service_credential?)"
    right = rest if rest in KAFKA_PROPERTIES | _OURS else None
    close = difflib.get_close_matches(first, sorted(_FIRST), n=1)
    hint = right or (close and f"{close[0]}.{rest}")
    return f"no client of Kafka reads {name}" + (f" (did you mean {hint}?)" if hint else "")


def _written(name: str) -> str:
    return name.lower().replace("_", ".")
