"""The key stores and trust stores of Kafka clients: their kinds and what each needs."""

from collections.abc import Iterator, Mapping

PEM, JKS, PKCS12 = "PEM", "JKS", "PKCS12"
KINDS = (PEM, JKS, PKCS12)
_STORES = ("truststore", "keystore")
_TEXTS = {
    "truststore": ("ssl.truststore.certificates",),
    "keystore": ("ssl.keystore.key", "ssl.keystore.certificate.chain"),
}
"""Properties that have a store's content itself, as PEM."""


def problems(properties: Mapping[str, str], secrets: frozenset[str]) -> Iterator[str]:
    """The problems of stores' properties. `secrets` has the names whose values are not known."""
    for store in _STORES:
        if f"ssl.{store}.type" not in secrets:
            yield from _problems(properties, store)
    if "ssl.keystore.key" in properties and "ssl.keystore.certificate.chain" not in properties:
        yield "ssl.keystore.key needs ssl.keystore.certificate.chain"


def _problems(properties: Mapping[str, str], store: str) -> Iterator[str]:
    kind, location = kind_of(properties, store), f"ssl.{store}.location"
    text = next((key for key in _TEXTS[store] if key in properties), None)
    if kind not in KINDS:
        yield f"ssl.{store}.type {kind} is none of {', '.join(KINDS)}"
    elif text and location in properties:
        yield f"{text} and {location} exclude each other: name one"
    elif text and kind != PEM:
        yield f"{text} is PEM, and ssl.{store}.type is {kind}: leave the type out"
    elif location in properties and kind != PEM and f"ssl.{store}.password" not in properties:
        yield f"ssl.{store}.type {kind} needs ssl.{store}.password, by reference"


def kind_of(properties: Mapping[str, str], store: str) -> str:
    """The kind of a store: as named, else PEM where the content is given, else Kafka's default."""
    default = PEM if any(key in properties for key in _TEXTS[store]) else JKS
    return properties.get(f"ssl.{store}.type", default).upper()


def texts(properties: Mapping[str, str], store: str) -> str | None:
    """The content of a store that is given itself, as one PEM text; None if it is a file."""
    parts = [properties[key] for key in _TEXTS[store] if key in properties]
    return "\n".join(parts) if parts else None


def by_kind(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties with the type of each store that has its content here: Java takes JKS else."""
    kinds = {
        f"ssl.{store}.type": kind_of(properties, store)
        for store in _STORES
        if any(key in properties for key in (*_TEXTS[store], f"ssl.{store}.type"))
    }
    return {**properties, **kinds}
