"""Kafka's client properties of which only some values can be right: those, and the nearest."""

import difflib
import re
from collections.abc import Iterator, Mapping

from quotaflow.pipelines.secrets import REFERENCES

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""Logins that Java's client and kafka-python both take, by username and password alone."""
_WITH_SASL = ("SASL_PLAINTEXT", "SASL_SSL")
_MOST_PORT = 65_535


def problems(properties: Mapping[str, str]) -> Iterator[str]:
    """What cannot be right of them, one text each; a reference can, until it is looked up."""
    servers = properties.get("bootstrap.servers")
    if servers is not None and (problem := servers_problem(servers)):
        yield f"bootstrap.servers: {problem}"
    protocol = properties.get("security.protocol", "PLAINTEXT")
    if protocol.upper() not in PROTOCOLS:
        yield from _none_of("security.protocol", protocol, PROTOCOLS)
    mechanism = properties.get("sasl.mechanism")
    if mechanism is not None:
        yield from _none_of("sasl.mechanism", mechanism, MECHANISMS)
    elif protocol.upper() in _WITH_SASL and "sasl.username" not in properties:
        # Beside a username it is PLAIN: secrets.resolve. Java would take GSSAPI.
        yield f"{protocol} needs sasl.mechanism: name one of {', '.join(MECHANISMS)}"


def servers_problem(servers: str) -> str | None:
    """Why these are no brokers as host:port,host:port."""
    if servers.startswith(REFERENCES):
        return None
    named = [part.strip() for part in servers.split(",") if part.strip()]
    wrong = next((each for each in named if not _has_port(each)), None)
    if wrong is not None:
        host = re.sub(r":[^:/\]]*$", "", wrong)
        return f"{wrong} has no port: write {host}:9092"
    return None if named else "no broker is named: write host:port,host:port"


def _has_port(server: str) -> bool:
    port = re.fullmatch(r"\S+:([0-9]{1,5})", server)
    return port is not None and 1 <= int(port[1]) <= _MOST_PORT


def _none_of(key: str, value: str, known: tuple[str, ...]) -> Iterator[str]:
    if value not in known and not value.startswith(REFERENCES):
        near = difflib.get_close_matches(value.upper(), known, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        yield f"{key} {value} is none of {', '.join(known)}{hint}"
