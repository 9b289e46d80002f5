"""The section of conf about the cluster: Kafka's client properties and their values."""

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from quotaflow.pipelines.config.base import Principal, Section
from quotaflow.pipelines.config.secrets import REFERENCES, literal_secret_problem, principal

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


def _none_of(key: str, value: str, allowed: tuple[str, ...]) -> Iterator[str]:
    if value not in allowed and not value.startswith(REFERENCES):
        near = difflib.get_close_matches(value.upper(), allowed, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        yield f"{key} {value} is none of {', '.join(allowed)}{hint}"


class KafkaSection(Section):
    """How to reach the cluster: any Kafka client property, secrets as env:NAME or secret:scope/key.

    `cluster_id` pins the cluster the conf means; a broker of another cluster is refused. A login
    is a username and password (PLAIN, SCRAM), or a certificate (mTLS). Whom brokers take it for is
    told by its properties, or, with mTLS, by `principal`. Databricks has Kafka's client under names
    that begin with `kafkashaded.`: its login modules are found with that as `login_module_prefix`.
    """

    properties: dict[str, str] = Field(default_factory=dict)
    cluster_id: str | None = None
    principal: Principal | None = None
    login_module_prefix: Literal["", "kafkashaded."] = ""

    @field_validator("properties", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        empty = [str(key) for key, given in value.items() if given is None]
        if empty:
            raise ValueError(f"{', '.join(empty)} has no value: write one, or leave the key out")
        return {str(k): str(v).lower() if isinstance(v, bool) else str(v) for k, v in value.items()}

    @field_validator("properties")
    @classmethod
    def _protocol_by_its_name(cls, properties: dict[str, str]) -> dict[str, str]:
        protocol = properties.get("security.protocol", "").upper()
        # Kafka's own client takes small letters too, others do not.
        return properties | ({"security.protocol": protocol} if protocol in PROTOCOLS else {})

    @model_validator(mode="after")
    def _no_wrong_values(self) -> "KafkaSection":
        literal = [p for item in self.properties.items() if (p := literal_secret_problem(*item))]
        wrong = [*literal, *problems(self.properties)]
        if wrong:
            raise ValueError("; ".join(wrong))
        return self

    @property
    def own_principal(self) -> str | None:
        """Whom brokers take this login for, as they print it; None where nothing tells."""
        return self.principal or principal(self.properties)
