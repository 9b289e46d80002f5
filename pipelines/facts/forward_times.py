"""Times of a file's lines where clocks went back: no record has a time that decides."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa

from quotaflow.udfs.request_log.columns import AMBIGUOUS_TIME, LINES


@dataclass(slots=True)
class ForwardTimes:
    """Chooses between two instants of a time so that time goes forward, line by line.

    `latest` is the latest time that a line may have. Lines may be out of order by `skew`.
    """

    latest: datetime
    skew: timedelta
    _before: datetime | None = None
    _is_sure: bool = False

    def chosen(self, lines: pa.Table) -> pa.Table:
        """LINES with the times chosen. They follow the lines of the last call."""
        if lines["other_time"].null_count == lines.num_rows:
            stated = lines["stated_time"].drop_null()
            if len(stated):
                self._before, self._is_sure = stated[-1].as_py(), True
            return lines
        names = ("stated_time", "other_time", "event_time", AMBIGUOUS_TIME)
        rows = zip(*(lines[name].to_pylist() for name in names), strict=True)
        chosen = [self._of_line(*row) for row in rows]
        for name, values in zip(names[2:], zip(*chosen, strict=True), strict=True):
            field = LINES.field(name)
            at = lines.schema.get_field_index(name)
            lines = lines.set_column(at, field, pa.array(values, field.type))
        return lines

    def _of_line(
        self,
        stated: datetime | None,
        other: datetime | None,
        event: datetime | None,
        is_ambiguous: bool | None,
    ) -> tuple[datetime | None, bool | None]:
        if stated is None:
            return event, is_ambiguous
        if other is None:
            self._before, self._is_sure = stated, True
            return event, is_ambiguous
        first, second = sorted((stated, other))
        before, apart = self._before, second - first
        if before is None or not first - apart <= before <= second + apart:
            self._before, self._is_sure = first, False
        elif before - self.skew > first:
            self._before, self._is_sure = second, True
        else:
            # As sure as the line before it.
            self._before = first
        return min(self._before, self.latest), not self._is_sure
