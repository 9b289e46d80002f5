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
    own = key_stores.read((stores / "broker.p12").read_bytes(), made.BROKER_PASSWORD, None)
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
    jks = key_stores.read(
        (stores / "client.jks").read_bytes(), made.STORE_PASSWORD, made.KEY_PASSWORD
    )
    (stores / "client-key.pem").write_text(jks.identity_pem)
    key, chain = jks.identity_pem.split("-----END PRIVATE KEY-----\n")
    pem = {"security.protocol": "SSL", "ssl.truststore.type": "PEM"}
    cases = {
        "JKS": made.client_properties(stores, "JKS"),
        "PKCS12": made.client_properties(stores, "PKCS12"),
        "PKCS12 under the name JKS": made.client_properties(stores, "PKCS12")
        | {"ssl.keystore.type": "JKS", "ssl.truststore.type": "JKS"},
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


@pytest.mark.parametrize("kind", made.SUFFIX)
@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("ssl.keystore.password", "ssl.keystore.location {} cannot be read: wrong password"),
        ("ssl.truststore.password", "ssl.truststore.location {} cannot be read: wrong password"),
    ],
)
def test_a_wrong_password_is_one_error(stores: Path, kind: str, key: str, message: str) -> None:
    properties = made.client_properties(stores, kind) | {key: "hunter2"}
    with pytest.raises(ConfigError) as raised:
        tls.context(properties)
    place = properties[key.replace("password", "location")]
    assert message.format(place) in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_a_wrong_password_of_a_key_is_one_error(stores: Path) -> None:
    properties = made.client_properties(stores, "JKS") | {"ssl.key.password": "hunter2"}
    with pytest.raises(ConfigError, match=r"wrong ssl\.key\.password"):
        tls.context(properties)


def test_a_trust_store_is_no_key_store(stores: Path) -> None:
    content = (stores / "trust.jks").read_bytes()
    with pytest.raises(key_stores.KeyStoreError, match="no private key"):
        _ = key_stores.read(content, made.STORE_PASSWORD, None).identity_pem


def test_a_store_shows_no_key(stores: Path) -> None:
    store = key_stores.read(
        (stores / "client.jks").read_bytes(), made.STORE_PASSWORD, made.KEY_PASSWORD
    )
    assert "key=" not in repr(store)


@given(st.integers(0, 3000), st.binary(max_size=3))
def test_a_damaged_store_is_a_reason(stores: Path, at: int, other: bytes) -> None:
    content = (stores / "client.jks").read_bytes()
    damaged = content[: at % len(content)] + other
    assume(damaged != content)
    # Without the password nobody can see that only the digest at the end is damaged.
    passwords = (
        (None, made.STORE_PASSWORD) if len(damaged) < len(content) - 3 else (made.STORE_PASSWORD,)
    )
    for password in passwords:
        with pytest.raises(key_stores.KeyStoreError):
            key_stores.read(damaged, password, made.KEY_PASSWORD)
