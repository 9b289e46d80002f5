"""What `with_limits` (shared/macros.sql) needs of a declaration: the levels of quotas."""

import pyarrow as pa

from quotaflow.udfs.rules.quota import LEVELS

VALID_FROM = "coalesce(set_at, event_time)"
"""SQL for the time from which a row of `client_quotas` is valid."""


def quota_levels() -> pa.Table:
    """How an entity of each level selects users and client ids, as rows for a rule."""
    rows = [
        {"level": level, "of_user": of_user, "of_client_id": of_client_id}
        for level, (of_user, of_client_id) in enumerate(LEVELS, 1)
    ]
    return pa.Table.from_pylist(rows)
