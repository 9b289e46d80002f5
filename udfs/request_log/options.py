"""What conf says of reading request-log lines, as workers need it."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LineOptions:
    """How lines are read. `sampling` has n for each API of whose lines one of n is kept.

    `shippers` are client ids, which leave out lines only with one of `shipper_principals`.
    The number in a name is a broker only if it is one of `brokers`, which a snapshot has.
    `time_zone` is that of times that do not name theirs; None: such a time is not read.
    `line_field` is a field that has the line in a record of a shipper that is not known.
    """

    max_line_bytes: int
    max_body_bytes: int
    max_clock_skew_s: int
    shippers: tuple[str, ...] = ()
    shipper_principals: tuple[str, ...] = ()
    controller_listeners: tuple[str, ...] = ()
    sampling: Mapping[str, int] = field(default_factory=dict)
    without_body: tuple[str, ...] = ()
    time_zone: str | None = None
    brokers: tuple[int, ...] = ()
    line_field: str | None = None

    @property
    def has_zone(self) -> bool:
        """Whether a time without a zone is read: then it counts more than that of a wrapper."""
        return self.time_zone is not None
