"""What the demo says and shows: sentences, each with the command that shows what it says."""

from collections.abc import Sequence
from pathlib import Path

from quotaflow.demo.traffic_report import TrafficReport

Shown = tuple[str, Sequence[str]]
"""A sentence, and a command of quotaflow with its arguments."""

BEFORE = "Before any client works, a snapshot reads the cluster's state."
AMID = "While clients work, a second snapshot reads what changed."
AFTER = (
    "The traffic is over. The jobs read what brokers logged and clients pushed, and a third "
    "snapshot reads the end. Lines of what would take minutes have the times of earlier minutes."
)
AGAIN = "Two jobs run again, so that tables show what the changes did."

PLAN: tuple[Shown, ...] = (
    (
        "frank takes new transactional ids at every checkpoint, ivan has a consumer without work "
        "and so an open alert, and an old throttle is left on a topic: a plan says what to change.",
        ("plan",),
    ),
    ("apply writes it to the cluster, and records each step.", ("apply", "--yes")),
)

_REQUEST = "event_time,broker_id,api,principal,client_id,total_time_ms,throttle_time_ms"
_PUSH = "event_time,broker_id,principal,client_id,compression,terminating"
_POINT = "event_time,principal,client_id,metric,value,unit,kind"
_RATES = (
    "SELECT principal, sum(new_ids) AS new_ids, max(rate_per_s) AS max_rate_per_s, "
    "min(tokens) AS min_tokens, bool_or(is_violating) AS violated "
    "FROM producer_id_rates WHERE kind = 'allocation' "
    "GROUP BY principal ORDER BY new_ids DESC"
)
_CAUSES = (
    "SELECT principal, cause, is_accused, source, recommended_rate_per_s, quota_per_s "
    "FROM producer_id_advice WHERE cause IS NOT NULL ORDER BY principal"
)
_BURST = (
    "SELECT cause, ids, clients, hosts, source, source_ids, median_gap_ms, requests_per_id "
    "FROM producer_id_bursts WHERE principal = 'User:mallory'"
)
_OFFENDERS = (
    "SELECT principal, client_address, cause, step, blocked_reason, harm, producer_ids, "
    "allocating_connections FROM producer_id_offenders ORDER BY producer_ids DESC"
)
_HEAP = "SELECT * EXCLUDE (cluster_id) FROM producer_id_heap ORDER BY broker_id"
_IDS = (
    "SELECT state, count(*) AS ids, count(principal) AS with_owner FROM producer_ids "
    "GROUP BY state ORDER BY state"
)
_TALKERS = (
    "SELECT talker_rank, principal, client_id, produced_bytes, consumed_bytes, "
    "cross_rack_share FROM top_talkers ORDER BY talker_rank LIMIT 5"
)
_BETWEEN_RACKS = (
    "SELECT flow, client_rack, broker_rack, sum(bytes) AS bytes, "
    "sum(cross_rack_bytes) AS cross_rack_bytes FROM rack_traffic_by_hour "
    "GROUP BY flow, client_rack, broker_rack ORDER BY flow, client_rack, broker_rack"
)
_CLIENT_RACKS = (
    "SELECT client_id, declared_rack, inferred_rack, read_rack, bytes, cross_rack_bytes, "
    "verdict FROM client_racks WHERE client_id LIKE '%-orders-%' ORDER BY client_id"
)
_REPLICA_ADVICE = (
    "SELECT advice, client_rack, client_id, topic, "
    "CAST(saved_bytes_per_hour AS BIGINT) AS saved_bytes_per_hour "
    "FROM replica_advice ORDER BY saved_bytes_per_hour DESC, advice, topic"
)
_FAULTS = (
    "SELECT fault, topic, broker_id, sum(answers) AS answers, min(min_fetch_offset) AS min_offset, "
    "max(max_fetch_offset) AS max_offset FROM fetch_faults WHERE client_id LIKE 'raw-%' "
    "GROUP BY fault, topic, broker_id ORDER BY fault, broker_id"
)
_PROBLEMS = (
    "SELECT client_id, topic, advice, broker_id, resets, lagging_minutes FROM read_problems "
    "ORDER BY client_id, topic"
)
_LAGGING = (
    "SELECT client_id, topic, broker_id, leader_id, lagging_minutes, max_hw_lag FROM lagging_reads"
)
_THROTTLES = (
    "SELECT topic, side, broker_id, peer_broker_id, rate, peak_throttled_rate, "
    "stalled_fetches, is_effective, is_biting, reason FROM replication_throttles "
    "WHERE topic = 'bulk' ORDER BY event_time, side, broker_id, peer_broker_id"
)
_CHECKS = (
    "SELECT finding, topic, side, broker_id, rate, set_by, age_s FROM throttle_checks "
    "ORDER BY finding, topic, side, broker_id"
)
_SIZING = "SELECT * EXCLUDE (cluster_id) FROM throttle_sizing"
_PROGRESS = (
    "SELECT event_time, replica_id, CAST(bytes_left AS BIGINT) AS bytes_left, "
    "CAST(bytes_per_s AS BIGINT) AS bytes_per_s, eta_s, took_s FROM move_progress "
    "WHERE topic = 'bulk' ORDER BY event_time"
)
_MOVES = (
    "SELECT topic, replica_id, state, requested_by, requested_time, joined_time "
    "FROM reassignments ORDER BY requested_time"
)
_SIZES = (
    "SELECT client_id, sum(fetches) AS fetches, sum(drained_fetches) AS drained, "
    "sum(wait_timeout_fetches) AS empty, sum(bytes) AS bytes, "
    "max(max_response_bytes) AS most_at_once FROM fetch_sizes WHERE client_id LIKE '%-orders-%' "
    "GROUP BY client_id ORDER BY fetches DESC"
)
_COVERAGE = (
    "SELECT client_id, state, sum(expected_pushes) AS expected_pushes, "
    "sum(missing_pushes) AS missing_pushes, count(*) AS instances "
    "FROM client_coverage GROUP BY client_id, state ORDER BY client_id, state"
)
_REJECTIONS = (
    "SELECT client_id, error_code, error_name, pushes FROM telemetry_rejections "
    "WHERE client_id LIKE 'raw-%' ORDER BY client_id, error_code"
)
_ALERTS = (
    "SELECT rule, client_id, principal, first_breach, duration_ms, is_open, reason "
    "FROM metric_alerts ORDER BY first_breach"
)
_SUBSCRIPTIONS = (
    "SELECT subscription, metrics, interval_ms, match, matched_clients, mispredicted_clients "
    "FROM metric_subscriptions ORDER BY subscription"
)
_PIPELINE = (
    "SELECT target, outcome, reason, sum(row_count) AS row_count FROM pipeline_progress "
    "GROUP BY target, outcome, reason ORDER BY target, outcome, reason"
)
_QUALITY = (
    "SELECT suite, severity, count(*) AS expectations, bool_and(success) AS all_met, "
    "max(checked_rows) AS checked_rows FROM current_quality "
    "GROUP BY suite, severity ORDER BY suite, severity"
)

TABLES: tuple[Shown, ...] = (
    ("Meanwhile the changes work. These are the tables of the traffic.", ("tables",)),
    (
        "A line of the request log is a row.",
        ("show", "requests", "--limit", "5", "--columns", _REQUEST),
    ),
    (
        "A push of telemetry (KIP-714) is a row, with what the broker answered.",
        ("show", "telemetry_pushes", "--limit", "5", "--columns", _PUSH),
    ),
    ("Its points are rows too.", ("show", "client_metrics", "--limit", "5", "--columns", _POINT)),
    ("One line was torn on its way: it is counted.", ("show", "quarantine", "-x")),
    ("Four users took producer ids faster than 1 a second (KIP-936).", ("sql", _RATES)),
    ("Each has its own cause, and grace's deploy is no offence.", ("sql", _CAUSES)),
    ("mallory makes a producer for each batch.", ("sql", _BURST, "--json")),
    ("A plan limits an address only if nobody else uses it.", ("sql", _OFFENDERS)),
    (
        "Under half the quota mallory would have waited this long.",
        ("what-if", "--producer-ids-rate", "0.5", "--principal", "User:mallory"),
    ),
    ("Ids stay on the brokers' heap for a day.", ("sql", _HEAP)),
    ("The snapshots show which ids wrote.", ("sql", _IDS)),
    ("dave runs into his byte quota.", ("why", "dave")),
    ("These clients move the most bytes.", ("sql", _TALKERS)),
    ("Bytes between racks cost money.", ("sql", _BETWEEN_RACKS)),
    ("carol and bob read in their rack (KIP-392), heidi declares none.", ("sql", _CLIENT_RACKS)),
    ("So one change saves the most.", ("sql", _REPLICA_ADVICE)),
    ("Some reads go wrong: the four cases of KIP-392, and more.", ("sql", _FAULTS)),
    ("Each reader's problems have one advice.", ("sql", _PROBLEMS)),
    ("One consumer stays on a follower that falls further behind.", ("sql", _LAGGING)),
    ("A throttled move (KIP-73) has a throttle that works.", ("sql", _THROTTLES)),
    ("Its progress is known from fetches alone.", ("sql", _PROGRESS)),
    ("Another move is still under way.", ("sql", _MOVES)),
    ("Throttles are left over, too low, or miss a replica.", ("sql", _CHECKS)),
    ("A throttle must fit a follower's fetch.", ("sql", _SIZING)),
    ("What bounds the size of fetches (KIP-74).", ("sql", _SIZES)),
    ("Which clients push telemetry, and how many pushes are missing.", ("sql", _COVERAGE)),
    ("Brokers rejected some pushes.", ("sql", _REJECTIONS)),
    ("Two rules opened alerts.", ("sql", _ALERTS)),
    ("What clients subscribe to.", ("sql", _SUBSCRIPTIONS)),
    ("Every row that came in is accounted for.", ("sql", _PIPELINE)),
)

CHECKED: tuple[Shown, ...] = (
    (
        "Beside all this quotaflow check compared rows of two tables with what they must be.",
        ("sql", _QUALITY),
    ),
)

_FRANK = (
    "SELECT CASE WHEN ids.event_time < changes.event_time THEN 'before' ELSE 'after' END AS phase, "
    "count(*) AS producer_ids, "
    "round(count(*) * 1000 / date_diff('millisecond', min(ids.event_time), max(ids.event_time)), 2)"
    " AS ids_per_s "
    "FROM requests AS ids CROSS JOIN config_changes AS changes "
    "WHERE ids.api = 'INIT_PRODUCER_ID' AND ids.principal = 'User:frank' AND ids.error_code = 0 "
    "AND changes.entity_type = 'ip' AND changes.step = 'done' AND changes.purpose = 'apply' "
    "GROUP BY 1 ORDER BY 1 DESC"
)
_IVAN = (
    "SELECT push_interval_ms, requested_metrics, min(event_time) AS since "
    "FROM telemetry_subscriptions WHERE client_id = 'rdk-idle-ivan' AND error_code = 0 "
    "GROUP BY push_interval_ms, requested_metrics ORDER BY since"
)
_DEAD_TIME = "SELECT changes, p95_delay_s, dead_time_s FROM feedback_dead_times"

EFFECT: tuple[Shown, ...] = (
    ("frank now gets fewer producer ids: one connection a second at each broker.", ("sql", _FRANK)),
    ("ivan's idle consumer alone pushes more, and more often.", ("sql", _IVAN)),
    ("A change takes this long to show in tables.", ("sql", _DEAD_TIME)),
    ("restore gives everything back.", ("restore", "--all", "--yes")),
)


def clients(report: TrafficReport) -> str:
    """What the clients did, by their own counts."""
    acked = sum(sum(client.records_acked.values()) for client in report.clients)
    ids = sum(client.producer_ids for client in report.clients)
    return (
        f"The clients wrote {acked} records and were given {ids} producer ids, mallory "
        f"{report.producer_ids('User:mallory')} of them."
    )


def last(page: Path) -> Shown:
    """What needs no cluster: the report as one file."""
    return "All of it is on one page, to read offline.", ("report", "--out", str(page))
