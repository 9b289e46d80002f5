"""Key stores of Java, read without a JVM: PKCS12, and JKS as the JDK's KeyProtector writes it."""

import base64
import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec

from quotaflow.pipelines import extras
from quotaflow.pipelines.errors import MissingToolError

_JKS_MAGIC, _JCEKS_MAGIC = b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"
_SEQUENCE, _OCTETS = 0x30, 0x04
_DIGEST_BYTES = 20
_KEY_ENTRY, _CERTIFICATE_ENTRY = 1, 2
_VERSIONS = (1, 2)
_LINE = 64


class KeyStoreError(Exception):
    """A store that cannot be read, with the reason; no message has a password."""


@dataclass(frozen=True, slots=True)
class KeyStore:
    """What a store has: a private key (PKCS8), its chain with its own first, other certificates.

    All are DER.
    """

    key: bytes | None = field(repr=False)
    chain: tuple[bytes, ...]
    trusted: tuple[bytes, ...]

    @property
    def identity_pem(self) -> str:
        """Key and chain as PEM. Raises KeyStoreError without a key."""
        if self.key is None:
            raise KeyStoreError("it has no private key")
        return _pem("PRIVATE KEY", self.key) + "".join(_pem("CERTIFICATE", c) for c in self.chain)

    @property
    def trusted_pem(self) -> str:
        """The trusted certificates as PEM. Raises KeyStoreError if there are none."""
        if not self.trusted:
            raise KeyStoreError("it has no trusted certificate")
        return "".join(_pem("CERTIFICATE", each) for each in self.trusted)


def read(content: bytes, password: str | None, key_password: str | None) -> KeyStore:
    """A store by its content, not by the type that is named: Java reads either by either name.

    Raises KeyStoreError for a store of another kind, a damaged one or a wrong password, and
    MissingToolError for PKCS12 without its package.
    """
    if content.startswith(_JKS_MAGIC):
        try:
            return _jks(content, password, key_password or password)
        except (IndexError, struct.error, UnicodeDecodeError):
            raise KeyStoreError("it is cut off or damaged") from None
    if content.startswith(_JCEKS_MAGIC):
        raise KeyStoreError("it is JCEKS: keytool -importkeystore makes PKCS12 of it")
    if content[:1] == bytes([_SEQUENCE]):
        return _pkcs12(content, password)
    raise KeyStoreError("it is neither PKCS12 nor JKS")


def _pkcs12(content: bytes, password: str | None) -> KeyStore:
    if find_spec("cryptography") is None:
        raise MissingToolError(f"PKCS12 needs a package: {extras.install('keystores')}")
    from cryptography.hazmat.primitives import serialization as form  # noqa: PLC0415  optional
    from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415  optional

    try:
        store = pkcs12.load_pkcs12(content, password.encode() if password is not None else None)
    except ValueError as error:
        raise KeyStoreError(f"wrong password, or no PKCS12 ({error})") from None
    der = form.Encoding.DER
    others = tuple(each.certificate.public_bytes(der) for each in store.additional_certs)
    own = store.cert.certificate.public_bytes(der) if store.cert else None
    if store.key is None:
        return KeyStore(None, (), (own, *others) if own else others)
    key = store.key.private_bytes(der, form.PrivateFormat.PKCS8, form.NoEncryption())
    return KeyStore(key, (own, *others) if own else others, others)


@dataclass(slots=True)
class _Reader:
    """Takes values from bytes in order, as Java's DataInputStream does."""

    content: bytes
    at: int = 0

    def take(self, count: int) -> bytes:
        taken = self.content[self.at : self.at + count]
        if len(taken) != count:
            raise IndexError
        self.at += count
        return taken

    def number(self) -> int:
        (value,) = struct.unpack(">I", self.take(4))
        return int(value)

    def text(self) -> str:
        (length,) = struct.unpack(">H", self.take(2))
        return self.take(length).decode()

    def block(self) -> bytes:
        return self.take(self.number())


def _jks(content: bytes, password: str | None, key_password: str | None) -> KeyStore:
    if password is not None:
        _verify(content, password)
    reader = _Reader(content[:-_DIGEST_BYTES], len(_JKS_MAGIC))
    version, count = reader.number(), reader.number()
    if version not in _VERSIONS:
        raise KeyStoreError(f"its version {version} is not known")
    key, chain, trusted = None, tuple[bytes, ...](), list[bytes]()
    for _ in range(count):
        kind = reader.number()
        reader.text()  # its alias
        reader.take(8)  # its time
        if kind == _KEY_ENTRY:
            protected = reader.block()
            certificates = tuple(_certificate(reader, version) for _ in range(reader.number()))
            if key is None:
                key, chain = _unprotected(protected, key_password), certificates
        elif kind == _CERTIFICATE_ENTRY:
            trusted.append(_certificate(reader, version))
        else:
            raise KeyStoreError(f"it has an entry of kind {kind}, which is not known")
    return KeyStore(key, chain, tuple(trusted))


def _verify(content: bytes, password: str) -> None:
    begin, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    # The JDK's own words (JavaKeyStore.getPreKeyedHash). It is no protection against an attacker.
    keyed = password.encode("utf-16-be") + b"Mighty Aphrodite" + begin
    if hashlib.sha1(keyed, usedforsecurity=False).digest() != digest:
        raise KeyStoreError("wrong password, or the store is damaged")


def _certificate(reader: _Reader, version: int) -> bytes:
    if version > 1:
        reader.text()  # X.509
    return reader.block()


def _unprotected(protected: bytes, password: str | None) -> bytes:
    """A key by the JDK's KeyProtector: salt, then the key under a chain of SHA-1, then a check."""
    if password is None:
        raise KeyStoreError("its key needs a password")
    *_, sealed = _octets(protected)
    secret, salt = password.encode("utf-16-be"), sealed[:_DIGEST_BYTES]
    hidden, check = sealed[_DIGEST_BYTES:-_DIGEST_BYTES], sealed[-_DIGEST_BYTES:]
    block, stream = salt, bytearray()
    while len(stream) < len(hidden):
        block = hashlib.sha1(secret + block, usedforsecurity=False).digest()
        stream += block
    key = bytes(one ^ other for one, other in zip(hidden, stream, strict=False))
    if hashlib.sha1(secret + key, usedforsecurity=False).digest() != check:
        raise KeyStoreError("wrong ssl.key.password")
    return key


def _octets(content: bytes) -> Iterator[bytes]:
    """The octet strings in a DER sequence, at any depth of sequences."""
    at = 0
    while at < len(content):
        kind, length, at = content[at], content[at + 1], at + 2
        if length & 0x80:
            count = length & 0x7F
            length, at = int.from_bytes(content[at : at + count], "big"), at + count
        value = content[at : at + length]
        if kind == _SEQUENCE:
            yield from _octets(value)
        elif kind == _OCTETS:
            yield value
        at += length


def _pem(what: str, content: bytes) -> str:
    text = base64.b64encode(content).decode()
    lines = [text[at : at + _LINE] for at in range(0, len(text), _LINE)]
    return "\n".join([f"-----BEGIN {what}-----", *lines, f"-----END {what}-----", ""])
