"""Tables that plans, the report, `why` and dashboards read, each replaced whole.

`pipelines/results/answers/` computes them when what they are computed from changed.
"""

from quotaflow.schemas.tables.answers import (
    producer_ids,
    quotas,
    reads,
    replication,
    telemetry,
    throttles,
)

MODULES = (producer_ids, quotas, telemetry, replication, throttles, reads)
"""The modules that declare them, by area."""
