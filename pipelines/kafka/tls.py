"""The TLS context of kafka-python, from the stores that Java's properties name."""

import os
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from quotaflow.pipelines.config import stores
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.kafka import key_stores


def context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """The context for properties as Java takes them, secrets looked up.

    Raises ConfigError that names a store that cannot be read, without a secret.
    """
    taken = _trust(properties)
    taken.check_hostname = properties.get("ssl.endpoint.identification.algorithm", "https") != ""
    text = stores.texts(properties, "keystore")
    location = properties.get("ssl.keystore.location")
    if text is None and location is None:
        return taken
    with _readable("ssl.keystore.key" if text else f"ssl.keystore.location {location}"):
        # Without a password here OpenSSL prompts for one on the terminal.
        password = properties.get("ssl.key.password", "")
        if text is None and stores.kind_of(properties, "keystore") == stores.PEM:
            taken.load_cert_chain(location or "", password=password)
            return taken
        if text is None:
            text, password = _store(properties, "keystore").identity_pem, ""
        with _as_file(text) as path:
            taken.load_cert_chain(path, password=password)
    return taken


def _trust(properties: Mapping[str, str]) -> ssl.SSLContext:
    text = stores.texts(properties, "truststore")
    location = properties.get("ssl.truststore.location")
    with _readable(f"ssl.truststore.{f'location {location}' if location else 'certificates'}"):
        if location is None or stores.kind_of(properties, "truststore") == stores.PEM:
            return ssl.create_default_context(cafile=location, cadata=text)
        trusted = _store(properties, "truststore").trusted_pem
        return ssl.create_default_context(cadata=trusted)


def _store(properties: Mapping[str, str], store: str) -> key_stores.KeyStore:
    location = Path(properties[f"ssl.{store}.location"])
    return key_stores.read(location, properties.get(f"ssl.{store}.password"))


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """A path to a text for OpenSSL, which takes keys from files only: in memory where it can be."""
    if hasattr(os, "memfd_create"):
        with open(os.memfd_create("quotaflow-key"), "wb") as file:
            file.write(text.encode())
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    with tempfile.NamedTemporaryFile(prefix="quotaflow-key-") as file:
        file.write(text.encode())
        file.flush()
        yield file.name


@contextmanager
def _readable(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:  # SSLError is one too
        raise ConfigError(
            f"{what} cannot be read: {error.strerror or error}; this user must be able to read it, "
            "its type must be that of ssl.*.type, and ssl.key.password that of its key"
        ) from None
    except key_stores.KeyStoreError as error:
        raise ConfigError(f"{what} cannot be read: {error}") from None
