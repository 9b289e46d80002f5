"""Why a replication throttle holds a replica back or does not (KIP-73): the reasons, by name.

`throttle_reason` of `pipelines/results/shared/macros.sql` decides.
"""

LEADER, FOLLOWER = "leader", "follower"
"""The sides: the broker that is read from, and the one that reads."""

DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC, UNSET = (
    "dynamic_broker",
    "dynamic_default",
    "static",
    "unset",
)
"""Where a rate comes from: brokers ignore one in their properties file."""

NO_THROTTLE = "no_throttle"
RATE_WITHOUT_LIST = "rate_without_list"
LIST_WITHOUT_RATE = "list_without_rate"
STATIC_RATE_IGNORED = "static_rate_ignored"
BROKER_REMOVED = "broker_gone"
NOT_LEADER = "not_leader"
NOT_REPLICATING = "not_replicating"
IN_ISR = "in_isr"
FOLLOWER_CAUGHT_UP = "follower_caught_up"
UNDER_RATE = "under_rate"
NO_STALLED_FETCHES = "no_stalled_fetches"
LIST_UNKNOWN, RATE_UNKNOWN, ISR_UNKNOWN, LAG_UNKNOWN = (
    "list_unknown",
    "rate_unknown",
    "isr_unknown",
    "lag_unknown",
)

NEAR = 0.9
"""Share of its rate from which a throttle counts as reached: rates in tables are of aligned
seconds, and can be one sample off the broker's."""
