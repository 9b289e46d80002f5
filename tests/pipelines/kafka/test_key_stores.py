"""Key stores of keytool give the same key, chain and trust as their PEM; damaged ones a reason."""

import ssl
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.kafka import key_stores, tls

from ... import key_stores as made


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shared, to read."""
    return made.make(tmp_path_factory.mktemp("stores"))


def handshake(client: ssl.SSLContext, stores: Path) -> str:
    """The client's name as a server sees it that trusts the client's certificate alone."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own = key_stores.read(stores / "broker.p12", made.BROKER_PASSWORD)
    with tls._as_file(own.identity_pem) as path:
        server.load_cert_chain(path)
    server.load_verify_locations(stores / "client.pem")
    server.verify_mode = ssl.CERT_REQUIRED
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    certificate = sides[1].getpeercert()
    assert certificate
    return dict(pair for part in certificate["subject"] for pair in part)["commonName"]


def test_every_kind_of_store_logs_in(stores: Path) -> None:
    store = key_stores.read(stores / "client.p12", made.STORE_PASSWORD)
    (stores / "client-key.pem").write_text(store.identity_pem)
    key, chain = store.identity_pem.split("-----END PRIVATE KEY-----\n")
    pem = {"security.protocol": "SSL", "ssl.truststore.type": "PEM"}
    cases = {
        "PKCS12": made.client_properties(stores, "PKCS12"),
        "PKCS12 under the name JKS": made.client_properties(stores, "JKS"),
        "PEM": pem
        | {
            "ssl.truststore.location": str(stores / "broker.pem"),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(stores / "client-key.pem"),
        },
        "texts": pem
        | {
            "ssl.truststore.certificates": (stores / "broker.pem").read_text(),
            "ssl.keystore.key": key + "-----END PRIVATE KEY-----",
            "ssl.keystore.certificate.chain": chain,
        },
    }
    seen = {name: handshake(tls.context(given), stores) for name, given in cases.items()}
    assert seen == dict.fromkeys(cases, "quotaflow")


@pytest.mark.parametrize("store", ["keystore", "truststore"])
def test_a_wrong_password_is_one_error(stores: Path, store: str) -> None:
    properties = made.client_properties(stores, "PKCS12") | {f"ssl.{store}.password": "hunter2"}
    with pytest.raises(ConfigError) as raised:
        tls.context(properties)
    place = f"ssl.{store}.location {properties[f'ssl.{store}.location']}"
    assert f"{place} cannot be read: wrong password" in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_java_s_old_format_is_one_error_with_what_converts_it(stores: Path) -> None:
    old = stores / "trust.jks"
    properties = made.client_properties(stores, "JKS") | {"ssl.truststore.location": str(old)}
    with pytest.raises(ConfigError) as raised:
        tls.context(properties)
    converts = (
        f"keytool -importkeystore -srckeystore {old} -destkeystore {old}.p12 -deststoretype PKCS12"
    )
    assert str(raised.value) == (
        f"ssl.truststore.location {old} cannot be read: it has the old format JKS: convert it "
        f"once, and name the new file: {converts}"
    )


def test_a_trust_store_is_no_key_store(stores: Path) -> None:
    with pytest.raises(key_stores.KeyStoreError, match="no private key"):
        _ = key_stores.read(stores / "trust.p12", made.STORE_PASSWORD).identity_pem


def test_a_store_shows_no_key(stores: Path) -> None:
    store = key_stores.read(stores / "client.p12", made.STORE_PASSWORD)
    assert "key=" not in repr(store)


@given(st.integers(0, 3000), st.binary(max_size=3))
def test_a_damaged_store_is_a_reason(stores: Path, at: int, other: bytes) -> None:
    content = (stores / "client.p12").read_bytes()
    damaged = content[: at % len(content)] + other
    assume(not damaged.startswith(content))
    file = stores / "damaged.p12"
    file.write_bytes(damaged)
    for password in (None, made.STORE_PASSWORD):
        with pytest.raises(key_stores.KeyStoreError):
            key_stores.read(file, password)
