"""Words the codes of views: a code and the columns that are its evidence make one sentence.

Views have no sentences. Code that shows it to people (plan, report and other commands) words it
here, so that each sentence exists once. `pipelines/reference/reasons.py` makes a page of the codes.

Pure. Evidence has names that clients chose: they are cut, and what does not print is escaped. A
code of another version, which has no words here, is shown as it is.
"""

from quotaflow.pipelines.reasons.desired_configs import (
    BLOCKED_REASONS,
    REASONS,
    blocked_reason,
    reason,
)
from quotaflow.pipelines.reasons.fetch_advice import (
    FETCH_STEPS,
    TRADE_OFFS,
    fetch_step,
    trade_off,
)
from quotaflow.pipelines.reasons.lag_causes import LAG_CAUSES, lag_cause, lag_step
from quotaflow.pipelines.reasons.other_config_managers import TRACES, trace
from quotaflow.pipelines.reasons.producer_id_bursts import (
    BURSTS,
    RECOMMENDATIONS,
    accusation,
    accused_burst,
    burst,
    cure,
    recommendation,
)
from quotaflow.pipelines.reasons.producer_rack_advice import (
    PRODUCER_RACK_STEPS,
    producer_rack_step,
)
from quotaflow.pipelines.reasons.read_problems import READ_STEPS, read_step
from quotaflow.pipelines.reasons.rebalances import TRIGGERS, rebalance_trigger
from quotaflow.pipelines.reasons.remote_read_advice import REMOTE_READ_STEPS, remote_read_step
from quotaflow.pipelines.reasons.replica_advice import REPLICA_STEPS, replica_step
from quotaflow.pipelines.reasons.without_telemetry import NO_TELEMETRY, telemetry_step
from quotaflow.pipelines.reasons.wording import MAX_NAME_CHARS, Wording

__all__ = [
    "BLOCKED_REASONS",
    "BURSTS",
    "FETCH_STEPS",
    "LAG_CAUSES",
    "MAX_NAME_CHARS",
    "NO_TELEMETRY",
    "PRODUCER_RACK_STEPS",
    "READ_STEPS",
    "REASONS",
    "RECOMMENDATIONS",
    "REMOTE_READ_STEPS",
    "REPLICA_STEPS",
    "TRACES",
    "TRADE_OFFS",
    "TRIGGERS",
    "WORDINGS",
    "Wording",
    "accusation",
    "accused_burst",
    "blocked_reason",
    "burst",
    "cure",
    "fetch_step",
    "lag_cause",
    "lag_step",
    "producer_rack_step",
    "read_step",
    "reason",
    "rebalance_trigger",
    "recommendation",
    "remote_read_step",
    "replica_step",
    "telemetry_step",
    "trace",
    "trade_off",
]

WORDINGS = {
    ("desired_configs", "reason_code"): REASONS,
    ("desired_configs", "blocked_reason"): BLOCKED_REASONS,
    ("producer_id_bursts", "cause"): BURSTS,
    ("producer_id_advice", "recommended_by"): RECOMMENDATIONS,
    ("other_config_managers", "evidence_code"): TRACES,
    ("fetch_advice", "trade_off"): TRADE_OFFS,
    ("fetch_advice", "advice"): FETCH_STEPS,
    ("replica_advice", "advice"): REPLICA_STEPS,
    ("producer_rack_advice", "advice"): PRODUCER_RACK_STEPS,
    ("remote_read_advice", "advice"): REMOTE_READ_STEPS,
    ("read_problems", "advice"): READ_STEPS,
    ("clients_without_telemetry", "reason"): NO_TELEMETRY,
    ("rebalances", "trigger"): TRIGGERS,
    ("why_groups_lag", "cause"): LAG_CAUSES,
}
"""View and column of each code."""
