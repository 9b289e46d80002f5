"""Key stores of Java, read without a JVM: PKCS12, which keytool writes since Java 9."""

import shlex
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from quotaflow.pipelines import extras
from quotaflow.pipelines.errors import MissingToolError

_OLD_FORMATS = {b"\xfe\xed\xfe\xed": "JKS", b"\xce\xce\xce\xce": "JCEKS"}
"""Proprietary formats of Java by their first bytes."""
_MOST_BYTES = 4 << 20


class KeyStoreError(Exception):
    """A store that cannot be read, with the reason; no message has a password."""


@dataclass(frozen=True, slots=True)
class KeyStore:
    """What a store has, as PEM: a private key, its chain with its own first, other certificates."""

    key: str | None = field(repr=False)
    chain: tuple[str, ...]
    trusted: tuple[str, ...]

    @property
    def identity_pem(self) -> str:
        """Key and chain. Raises KeyStoreError without a key."""
        if self.key is None:
            raise KeyStoreError("it has no private key")
        return self.key + "".join(self.chain)

    @property
    def trusted_pem(self) -> str:
        """The trusted certificates. Raises KeyStoreError if there are none."""
        if not self.trusted:
            raise KeyStoreError("it has no trusted certificate")
        return "".join(self.trusted)


def read(file: Path, password: str | None) -> KeyStore:
    """A store by its content, not by the type that is named: Java reads PKCS12 as JKS too.

    Raises KeyStoreError for a store of another kind, a damaged one or a wrong password, OSError for
    a file that cannot be read, and MissingToolError without the package for PKCS12.
    """
    with file.open("rb") as opened:
        content = opened.read(_MOST_BYTES)
    old = _OLD_FORMATS.get(content[:4])
    if old is not None:
        source, target = (shlex.quote(each) for each in (str(file), f"{file}.p12"))
        raise KeyStoreError(
            f"it has the old format {old}: convert it once, and name the new file: keytool "
            f"-importkeystore -srckeystore {source} -destkeystore {target} -deststoretype PKCS12"
        )
    return _pkcs12(content, password)


def _pkcs12(content: bytes, password: str | None) -> KeyStore:
    if find_spec("cryptography") is None:
        raise MissingToolError(f"PKCS12 needs a package: {extras.install('keystores')}")
    from cryptography.hazmat.primitives import serialization as form  # noqa: PLC0415  optional
    from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415  optional

    try:
        store = pkcs12.load_pkcs12(content, password.encode() if password is not None else None)
    except ValueError as error:
        raise KeyStoreError(f"wrong password, or no PKCS12 ({error})") from None
    certificates = [store.cert] if store.cert else []
    chain, others = (
        tuple(each.certificate.public_bytes(form.Encoding.PEM).decode() for each in some)
        for some in ([*certificates, *store.additional_certs], store.additional_certs)
    )
    if store.key is None:
        return KeyStore(None, (), chain)
    key = store.key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    return KeyStore(key.decode(), chain, others)
