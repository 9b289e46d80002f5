"""Words the codes of views: a code and the columns that are its evidence make one sentence.

Views have no sentences. Code that shows it to people (plan, report and other commands) words it
here, so that each sentence exists once. docs/reasons.md lists the codes with their evidence.

Pure. Evidence has names that clients chose: they are cut, and what does not print is escaped. A
code of another version, which has no words here, is shown as it is.
"""

from quotaflow.pipelines.reasons.desired_configs import (
    BLOCKED_REASONS,
    REASONS,
    blocked_reason,
    reason,
)
from quotaflow.pipelines.reasons.fetch_advice import TRADE_OFFS, trade_off
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
from quotaflow.pipelines.reasons.wording import MAX_NAME_CHARS, Wording

__all__ = [
    "BLOCKED_REASONS",
    "BURSTS",
    "MAX_NAME_CHARS",
    "REASONS",
    "RECOMMENDATIONS",
    "TRACES",
    "TRADE_OFFS",
    "WORDINGS",
    "Wording",
    "accusation",
    "accused_burst",
    "blocked_reason",
    "burst",
    "cure",
    "reason",
    "recommendation",
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
}
"""View and column of each code."""
