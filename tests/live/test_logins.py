"""Logins of large sites on a real broker: tokens of an identity provider, and Java's key stores."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.ports import LOOPBACK, free_ports
from quotaflow.pipelines import config
from quotaflow.pipelines.doctor import rights
from quotaflow.pipelines.doctor.cluster_probe import open_probe
from quotaflow.pipelines.errors import KafkaError
from quotaflow.pipelines.kafka import admin, key_stores

from .. import key_stores as stores
from . import all_uses, identity_provider
from .identity_provider import IdentityProvider

OAUTH = "org.apache.kafka.common.security.oauthbearer"
SECRET = "sasl.oauthbearer.client.secret"
USES = pytest.mark.parametrize(
    "runs", [False, pytest.param(True, marks=pytest.mark.faults)], ids=["by itself", "run --once"]
)


@dataclass(frozen=True, slots=True)
class Site:
    """A cluster of one broker with two listeners more: certificates, and tokens over TLS."""

    cluster: LocalCluster
    provider: IdentityProvider
    stores: Path
    certificates: str
    tokens: str


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Shared: the broker takes each login that these tests try."""
    folder = tmp_path_factory.mktemp("site")
    stores.make(folder)
    ports = free_ports(1, random.Random())[0]
    addresses = f"{LOOPBACK}:{ports.client}", f"{LOOPBACK}:{ports.internal}"
    with identity_provider.running() as provider:
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={provider.keys_url}"
        with LocalCluster(
            folder / "cluster",
            1,
            settings=settings(folder, addresses, provider),
            java_options=[allowed],
        ) as cluster:
            yield Site(cluster, provider, folder, *addresses)


def settings(
    folder: Path, addresses: tuple[str, str], provider: IdentityProvider
) -> dict[str, str]:
    """What the broker needs for the two listeners."""
    added = f",CERTIFICATES://{addresses[0]},TOKENS://{addresses[1]}"
    keystore = {
        "ssl.keystore.location": str(folder / "broker.p12"),
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.password": stores.BROKER_PASSWORD,
        "ssl.key.password": stores.BROKER_PASSWORD,
    }
    tokens = "listener.name.tokens"
    return {
        "listeners+": added,
        "advertised.listeners+": added,
        "listener.security.protocol.map+": ",CERTIFICATES:SSL,TOKENS:SASL_SSL",
        **{f"listener.name.certificates.{key}": value for key, value in keystore.items()},
        **{f"{tokens}.{key}": value for key, value in keystore.items()},
        "listener.name.certificates.ssl.client.auth": "required",
        "listener.name.certificates.ssl.truststore.location": str(folder / "clients.p12"),
        "listener.name.certificates.ssl.truststore.type": "PKCS12",
        "listener.name.certificates.ssl.truststore.password": stores.BROKER_PASSWORD,
        f"{tokens}.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{tokens}.oauthbearer.sasl.jaas.config": f"{OAUTH}.OAuthBearerLoginModule required;",
        f"{tokens}.oauthbearer.sasl.server.callback.handler.class": (
            f"{OAUTH}.OAuthBearerValidatorCallbackHandler"
        ),
        "sasl.oauthbearer.jwks.endpoint.url": provider.keys_url,
        "sasl.oauthbearer.expected.audience": identity_provider.AUDIENCE,
    }


def by_token(site: Site) -> dict[str, str]:
    """A login by a token, without its secret."""
    return {
        "bootstrap.servers": site.tokens,
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(site.stores / "broker.pem"),
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": site.provider.token_url,
        "sasl.oauthbearer.client.id": identity_provider.CLIENT_ID,
        "sasl.oauthbearer.scope": "kafka",
    }


@USES
def test_a_token_does_for_every_use(site: Site, tmp_path: Path, *, runs: bool) -> None:
    secrets = {SECRET: identity_provider.CLIENT_SECRET}
    all_uses.check(by_token(site), tmp_path, secrets, runs=runs)
    # Of the driver and of a task at least, beside those of commands.
    assert site.provider.tokens > 4


@pytest.mark.faults
def test_doctor_names_the_subject_of_a_token(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIGHT_SECRET", identity_provider.CLIENT_SECRET)
    conf = config.Conf(
        kafka=config.KafkaSection(properties=by_token(site) | {SECRET: "env:RIGHT_SECRET"})
    )
    with open_probe(conf) as probe:
        finding = next(each for each in rights.findings(probe) if each.subject == "principal")
    assert f"it is User:{identity_provider.SUBJECT}, from the token's claim sub" in finding.observed


@USES
@pytest.mark.parametrize("kind", stores.KINDS)
def test_java_s_key_stores_do_for_every_use(
    site: Site, tmp_path: Path, kind: str, *, runs: bool
) -> None:
    given = stores.client_properties(site.stores, kind) | {"bootstrap.servers": site.certificates}
    secrets = {key: given.pop(key) for key in list(given) if key.endswith("password")}
    all_uses.check(given, tmp_path, secrets, runs=runs)


def test_texts_of_keys_do_for_every_use(site: Site, tmp_path: Path) -> None:
    store = key_stores.read(site.stores / "client.p12", stores.STORE_PASSWORD)
    end = "-----END PRIVATE KEY-----\n"
    key, chain = store.identity_pem.split(end)
    given = {"bootstrap.servers": site.certificates, "security.protocol": "SSL"}
    secrets = {
        "ssl.keystore.key": key + end,
        "ssl.keystore.certificate.chain": chain,
        "ssl.truststore.certificates": (site.stores / "broker.pem").read_text(),
    }
    all_uses.check(given, tmp_path, secrets)


def test_a_refused_client_of_the_provider_is_one_error(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WRONG_SECRET", "hunter2")
    properties = by_token(site) | {SECRET: "env:WRONG_SECRET"}
    with pytest.raises(
        KafkaError, match="gave no token: HTTP status 401, invalid_client"
    ) as raised:
        admin.describe(properties, [])
    assert "hunter2" not in str(raised.value)


def test_a_token_that_brokers_do_not_take_is_one_error(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RIGHT_SECRET", identity_provider.CLIENT_SECRET)
    monkeypatch.setattr(identity_provider, "AUDIENCE", "another-cluster")
    properties = config.KafkaSection(properties=by_token(site) | {SECRET: "env:RIGHT_SECRET"})
    with pytest.raises(KafkaError, match="refused the login"):
        admin.describe(properties.properties, [])
