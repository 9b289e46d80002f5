"""64 bits that stand for some texts, the same wherever and whenever they are computed."""

from collections.abc import Iterable

from mmh3 import mmh3_x64_128_utupledigest


def digest(texts: Iterable[str | None]) -> int:
    """MurmurHash3 of the texts in their order; lengths go in too, so that no two run together."""
    encoded = [b"-" if text is None else b"%d:%s" % (len(text), text.encode()) for text in texts]
    return mmh3_x64_128_utupledigest(b"".join(encoded))[0]
