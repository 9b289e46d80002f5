"""The section of conf about the cluster: Kafka's client properties and their values."""

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from quotaflow.pipelines.config import kafka_names, logins, stores
from quotaflow.pipelines.config.base import Principal, Section, matches
from quotaflow.pipelines.config.secrets import REFERENCES, literal_secret_problem, principal

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = tuple(logins.MECHANISMS)
_WITH_SASL = ("SASL_PLAINTEXT", "SASL_SSL")
_MOST_PORT = 65_535
SERVICE_CREDENTIAL = "databricks.serviceCredential"
"""The option of Databricks' Kafka source for a service credential of Unity Catalog."""
_CREDENTIAL = "write the name of a service credential: letters, digits, . _ @ and -"
_LOGIN_NAMES = ("sasl.", "security.protocol", "ssl.keystore.")


def problems(properties: Mapping[str, str]) -> Iterator[str]:
    """The texts of all problems of these properties. A reference is valid until it is looked up."""
    for name in properties:
        if right := kafka_names.near(name):
            yield f"Kafka has no property {name} (did you mean {right}?)"
        elif problem := kafka_names.unread(name):
            yield problem
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
        # With a username, secrets.resolve sets PLAIN. Java's default is GSSAPI.
        yield f"{protocol} needs sasl.mechanism: name one of {', '.join(MECHANISMS)}"
    hidden = frozenset(key for key, value in properties.items() if value.startswith(REFERENCES))
    yield from logins.problems(properties, hidden)
    yield from stores.problems(properties, hidden)


def servers_problem(servers: str) -> str | None:
    """The problem of a list of brokers, which must be host:port,host:port; None if it is valid."""
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
    """How to reach the cluster: docs/connect.md lists the logins that work."""

    properties: dict[str, str] = Field(default={})
    """Properties of a Kafka client by Java's names. Commands connect to a cluster only with
    `bootstrap.servers`. For logins also librdkafka's names, such as `sasl.username` and
    `sasl.oauthbearer.client.id`, in place of `sasl.jaas.config`.
    """
    cluster_id: str | None = None
    """Id of the cluster of this conf: a broker of another cluster is refused, and nothing is
    planned for another cluster. null: the cluster that answers.
    """
    principal: Principal | None = None
    """Principal of this login, as brokers print it (`User:...`). null: derived from the user name
    or the Kerberos principal. A token, IAM and a certificate have none: name the principal here.
    """
    login_module_prefix: Literal["", "kafkashaded."] = ""
    """Prefix of the names of Kafka's login modules: nothing, or `kafkashaded.` on Databricks. Those
    of AWS then get `shadedmskiam.`.
    """

    service_credential: Annotated[str, matches(r"[\w.@-]{1,255}", _CREDENTIAL)] | None = None
    """Name of a service credential of Unity Catalog, which logs in to MSK and Event Hubs on
    Databricks. Then `properties` has no login. null: the login is in `properties`.
    """

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
        # Kafka's own client accepts lower case too, other clients do not.
        return properties | ({"security.protocol": protocol} if protocol in PROTOCOLS else {})

    @model_validator(mode="after")
    def _no_wrong_values(self) -> "KafkaSection":
        literal = [p for item in self.properties.items() if (p := literal_secret_problem(*item))]
        wrong = [*literal, *problems(self.properties)]
        if self.service_credential:
            named = [key for key in self.properties if key.startswith(_LOGIN_NAMES)]
            wrong += [f"service_credential brings the login: leave {key} out" for key in named]
        if wrong:
            raise ValueError("; ".join(wrong))
        return self

    @property
    def login(self) -> dict[str, str]:
        """`properties` for commands that log in, with the name of the service credential."""
        name = self.service_credential
        return self.properties | ({SERVICE_CREDENTIAL: name} if name else {})

    @property
    def own_principal(self) -> str | None:
        """The principal of this login, as brokers print it; None if conf does not determine it."""
        return self.principal or principal(self.properties)
