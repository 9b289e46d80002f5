"""Which request-log lines never leave the broker's machine, decided by their bytes alone."""

import re

CLIENT_ID = "quotaflow-shipper"
"""The shipper's client id."""

SECRET_APIS = (36, 38, 39, 40, 41, 51, 58)
"""Api keys whose bodies hold credentials: SaslAuthenticate, Create-, Renew-, Expire-
and DescribeDelegationToken, AlterUserScramCredentials (Kafka logs the salted password), Envelope.
"""

_HEADER = b'"requestHeader":'
_SECRET = re.compile(rb'\{"requestApiKey":(?:%b),' % "|".join(map(str, SECRET_APIS)).encode())


def holds_secret(line: bytes) -> bool:
    """Whether a line is of one of `SECRET_APIS`."""
    return _SECRET.match(line, _header_at(line)) is not None


def _header_at(line: bytes) -> int:
    """After the first header key: no text that a client chose comes before it."""
    return line.find(_HEADER) + len(_HEADER)


class OwnLines:
    """Matches the shipper's own lines by their bytes: its client id and, if known, its principal.

    Another client can call itself `quotaflow-shipper`, but it cannot take the principal. Both are
    searched where RequestConvertToJson puts them. A text that a client chose cannot occur there,
    because quotation marks in it are escaped.
    """

    def __init__(self, client_id: str = CLIENT_ID, principal: str | None = None) -> None:
        self._header = re.compile(
            rb'\{"requestApiKey":\d+,"requestApiVersion":\d+,'
            rb'"correlationId":-?\d+,"clientId":"%b"' % re.escape(client_id.encode())
        )
        self._principal = (
            b'"principal":"%b","listener":' % principal.encode() if principal else None
        )

    def __call__(self, line: bytes) -> bool:
        if not self._header.match(line, _header_at(line)):
            return False
        connection = line.rfind(b',"securityProtocol":"')
        return not self._principal or self._principal in line[connection:]
