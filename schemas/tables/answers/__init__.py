"""Tables that plans, the report, `why` and dashboards read, each replaced whole.

`pipelines/results/answers/` computes them when what they are computed from changed.
"""

from quotaflow.schemas.tables.answers import (
    group_lag,
    groups,
    producer_ids,
    quotas,
    reads,
    replication,
    telemetry,
    throttles,
)

MODULES = (producer_ids, quotas, telemetry, replication, throttles, reads, groups, group_lag)
"""The modules that declare them, by area."""
