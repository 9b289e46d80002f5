"""Lines that a shipper sends on, changes or leaves out."""

import re

from quotaflow.demo.line_filter import CLIENT_ID

_LONG = 1_500_000


class OddLines:
    """Lines made of one that a broker wrote."""

    def __init__(self, whole: bytes) -> None:
        head = b'"clientId":"'
        self.long = whole.replace(head, head + b"x" * _LONG, 1)
        self.odd = whole.replace(head, '"clientId":"caf\xe9 \\t  '.encode(), 1)
        self.secret = re.sub(rb'"requestApiKey":\d+', b'"requestApiKey":51', whole, count=1)
        name = b'"clientId":"%s"' % CLIENT_ID.encode()
        own = re.sub(rb'"clientId":"[^"]*"', name, whole, count=1)
        self.own = re.sub(rb'"principal":"[^"]*"', b'"principal":"User:shipper"', own)
        """Of the shipper itself."""
        self.alike = self.own.replace(b"User:shipper", b"User:mallory")
