"""The codes of desired_configs: why a config should change, and what blocks a row."""

from quotaflow.pipelines.reasons import producer_id_limits
from quotaflow.pipelines.reasons.wording import (
    Row,
    Wording,
    Words,
    by_code,
    cut,
    fixed,
    name,
    number,
    numbered,
    rate,
    worded,
)
from quotaflow.pipelines.terminal import texts

_NOBODY = "a login before the request log began"


def reason(row: Row) -> str:
    """Why a row of desired_configs asks for its value."""
    return worded(REASONS, row["reason_code"], row)


def blocked_reason(row: Row) -> str | None:
    """Why a row of desired_configs must not be planned; None where it can be."""
    code = row["blocked_reason"]
    return None if code is None else worded(BLOCKED_REASONS, code, row)


def _unit(row: Row) -> str:
    return "" if row["unit"] is None else f" {cut(row['unit'])}"


def _alert_open(row: Row) -> str:
    size = (
        "an unknown number of bytes"
        if row["wire_bytes_per_s"] is None
        else numbered(row, "wire_bytes_per_s", "byte")
    )
    return (
        f"alert {name(row, 'reason_detail')} is open for {numbered(row, 'matching', 'client')}: "
        f"{name(row, 'subject')} is past {number(row, 'bound', 1)}{_unit(row)}; asks these "
        f"clients alone for more: about {number(row, 'pushes_per_s', 1)} pushes and {size} "
        "per second"
    )


def _windows(row: Row) -> str:
    return f"throttled in {number(row, 'matching')} of {numbered(row, 'total', 'window')}"


def _usage(row: Row) -> str:
    return f"what it used most of the time is {number(row, 'observed', 1)}{_unit(row)}"


def _quota_throttles(row: Row) -> str:
    return f"its quota limits it: {_windows(row)}; {_usage(row)}"


def _no_quota(row: Row) -> str:
    return f"no quota binds it: {_windows(row)}; {_usage(row)}"


def _quota_fits(row: Row) -> str:
    return f"its use fits this quota: {_windows(row)}"


def _quota_altered_today(row: Row) -> str:
    return "it is raised once a day at most, and was altered less than a day ago: " + _windows(row)


def _rate(row: Row) -> str:
    capacity = (
        "a capacity that is not known"
        if row["bound"] is None
        else (f"{rate(row, 'bound')} ({name(row, 'reason_detail')})")
    )
    current = (
        "no rate is set"
        if row["rate_bytes_per_s"] is None
        else (f"{rate(row, 'rate_bytes_per_s')} are set by {name(row, 'subject', _NOBODY)}")
    )
    return (
        f"{row['reason_code']}: of {capacity} other traffic takes {rate(row, 'observed')}, "
        f"the throttled replicas are written at {rate(row, 'written_bytes_per_s')}, and "
        f"{current}{_slow_clients(row)}"
    )


def _slow_clients(row: Row) -> str:
    if row["shrunk_partitions"] is None:
        return ""
    return (
        f"; clients suffer: p99 of PRODUCE {number(row, 'produce_p99_ms')} ms, usually "
        f"{number(row, 'usual_produce_p99_ms')}, of FETCH {number(row, 'fetch_p99_ms')} ms, "
        f"usually {number(row, 'usual_fetch_p99_ms')}, partitions down to their "
        f"min.insync.replicas {number(row, 'shrunk_partitions')}"
    )


def _stale_rate(row: Row) -> str:
    return "left over: no replica that it limits was moved or behind recently; set by " + name(
        row, "subject", _NOBODY
    )


def _stale_list(row: Row) -> str:
    entries = (
        f"{name(row, 'subject', 'this pipeline')} named {number(row, 'matching')} of "
        f"{numbered(row, 'total', 'entry', 'entries')}"
        if row["matching"]
        else f"this pipeline named none of its {numbered(row, 'total', 'entry', 'entries')}"
    )
    return f"left over: no replica that it names was moved or behind recently; {entries}"


def _left_over(row: Row) -> str:
    return (
        f"left over: snapshots of {number(row, 'observed')} s show it, and no replica that it "
        "slows down was moved or behind recently; only a request log shows who set it"
    )


def _moved_unlisted(row: Row) -> str:
    return (
        f"replicas that are moved and that it does not name: {number(row, 'matching')}; they "
        "take what they can get, though a rate of "
        f"{rate(row, 'rate_bytes_per_s')} is set"
    )


def _or_recommended(text: str) -> Words:
    """Names the rate that would be planned otherwise."""

    def words(row: Row) -> str:
        is_rate = row["evidence_table"] == "replication_rate_advice"
        if not is_rate or row["config_value"] is None or row["reason_code"] == "cooldown":
            return text
        fitting = texts.rate(float(row["config_value"]))
        return f"{text}; {fitting} fit, by {reason(row)}"

    return words


def _floor_exceeds_capacity(row: Row) -> str:
    return (
        "what is written into its throttled replicas, or 1 MB/s, is more than what is left of its "
        f"capacity: move fewer at once{_slow_clients(row)}"
    )


def _rate_not_above_writes(row: Row) -> str:
    return (
        "the rate that is set is no more than what is written into all replicas it would limit "
        f"then, {rate(row, 'written_bytes_per_s')}: raise it first, or the move never "
        "ends"
    )


def _set_by_other(row: Row) -> str:
    return (
        f"left over, but set by {name(row, 'subject', _NOBODY)}, who is not in "
        "replication.cleanup_principals of conf"
    )


_WINDOWS = ("matching", "total")


_CLIENTS_SUFFER = (
    "produce_p99_ms",
    "usual_produce_p99_ms",
    "fetch_p99_ms",
    "usual_fetch_p99_ms",
    "shrunk_partitions",
)


_OF_RATE = (
    "observed",
    "bound",
    "reason_detail",
    "written_bytes_per_s",
    "rate_bytes_per_s",
    "subject",
    *_CLIENTS_SUFFER,
)


_RATE_MEANINGS = {
    "headroom": "A rate from conf's share of what other traffic leaves of the capacity.",
    "floor": "Little is left: the rate is what is written, up to twice that if clients are well.",
    "step_bound": "A step on the way there: no step more than doubles or halves a rate.",
    "unchanged": "The rate that is set is near enough.",
    "cooldown": "The rate was changed less than the cooldown ago.",
    "clients_degraded": "Clients wait longer than usual: half the rate, or what is left.",
    "capacity_unknown": "Conf has no capacity of the broker: there is no rate to advise.",
    "floor_exceeds_capacity": "What is written is more than what is left: no rate is right.",
    "floor_exceeds_capacity_and_clients_degraded": "The same, and clients wait longer than usual.",
}


REASONS = by_code(
    (
        *producer_id_limits.REASONS,
        Wording(
            "alert_open",
            "An alert is open; its clients are asked for more metrics.",
            (
                "bound",
                "unit",
                "matching",
                "reason_detail",
                "subject",
                "pushes_per_s",
                "wire_bytes_per_s",
            ),
            _alert_open,
        ),
        Wording(
            "alerts_closed",
            "No alert of a subscription is open any more.",
            (),
            fixed("no alert that asked for it is open any more: takes it back"),
        ),
        Wording(
            "troubleshoot_ended",
            "A temporary subscription of troubleshoot was not deleted.",
            (),
            fixed("quotaflow troubleshoot left it behind: takes it back after its lease"),
        ),
        Wording(
            "quota_throttles",
            "The user's quota throttles it in more than one of ten windows.",
            ("observed", "bound", "unit", *_WINDOWS),
            _quota_throttles,
        ),
        Wording(
            "no_quota",
            "No quota of the user limits it.",
            ("observed", "unit", *_WINDOWS),
            _no_quota,
        ),
        Wording("quota_fits", "The user's quota fits its usage.", _WINDOWS, _quota_fits),
        Wording(
            "quota_altered_today",
            "The quota is too low, and was altered less than a day ago.",
            _WINDOWS,
            _quota_altered_today,
        ),
        *(Wording(code, meaning, _OF_RATE, _rate) for code, meaning in _RATE_MEANINGS.items()),
        Wording(
            "stale_rate",
            "A rate of a throttle whose replicas are neither moved nor behind any more.",
            ("rate_bytes_per_s", "subject"),
            _stale_rate,
        ),
        Wording(
            "stale_list",
            "A list of throttled replicas that are neither moved nor behind any more.",
            (*_WINDOWS, "subject"),
            _stale_list,
        ),
        Wording(
            "leftover_rate",
            "Left over by snapshots alone: a rate of a throttle that nothing needed.",
            ("observed", "unit"),
            _left_over,
        ),
        Wording(
            "leftover_list",
            "Left over by snapshots alone: a list of throttled replicas that nothing needed.",
            ("observed", "unit"),
            _left_over,
        ),
        Wording(
            "moved_unlisted",
            "A list does not name replicas that are moved while a rate is set.",
            ("matching", "rate_bytes_per_s"),
            _moved_unlisted,
        ),
    )
)
"""Codes of desired_configs.reason_code."""


BLOCKED_REASONS = by_code(
    (
        *producer_id_limits.BLOCKED_REASONS,
        Wording(
            "usage_estimated",
            "Brokers charge more request time, and bytes of SHARE_FETCH, than the request log has.",
            (),
            fixed(
                "brokers charge the time of network threads and bytes of SHARE_FETCH too, and the "
                "request log has neither: a quota from it would be too low"
            ),
        ),
        Wording(
            "no_capacity_for_raise",
            "Conf has no capacity of brokers, so a raise has no bound.",
            (),
            fixed("replication.capacity_bytes_per_s of conf is not set, so no quota is raised"),
        ),
        Wording(
            "raise_over_budget",
            "All raised quotas together would be more than their budget.",
            (),
            fixed(
                "all raised quotas together would be more than quotas.raise_budget_share of the "
                "capacity of a broker"
            ),
        ),
        Wording(
            "capacity_unknown",
            "Conf has no capacity of the broker.",
            (),
            fixed(
                "replication.capacity_bytes_per_s of conf is not set, and what the broker carried "
                "so far is no bound"
            ),
        ),
        Wording(
            "floor_exceeds_capacity",
            "No rate is right: too much is written into what is throttled.",
            _CLIENTS_SUFFER,
            _floor_exceeds_capacity,
        ),
        Wording(
            "rate_without_list",
            "No list names the broker's replicas, so a rate has no effect.",
            ("config_value", *_OF_RATE),
            _or_recommended("no list names its replicas, and a rate alone does nothing"),
        ),
        Wording(
            "changed_recently",
            "The rate was changed less than the cooldown ago.",
            (),
            fixed("its rate was changed so short a time ago that nobody sees yet what that did"),
        ),
        Wording(
            "not_managed",
            "Conf's replication.manage is false.",
            ("config_value", *_OF_RATE),
            _or_recommended("replication.manage of conf is false"),
        ),
        Wording(
            "malformed_list",
            "The list has entries that name no replica.",
            (),
            fixed("its list has entries that mean nothing: set it again by hand"),
        ),
        Wording(
            "rate_not_above_writes",
            "With the longer list, the rate that is set would never let the move end.",
            ("written_bytes_per_s",),
            _rate_not_above_writes,
        ),
        Wording(
            "set_by_other",
            "Left over, and set by a login that conf's replication.cleanup_principals lacks.",
            ("subject",),
            _set_by_other,
        ),
        Wording(
            "leftovers_not_managed",
            "Conf's replication.remove_leftovers is false.",
            (),
            fixed(
                "replication.remove_leftovers of conf is false, and without a request log nobody "
                "knows who set it"
            ),
        ),
        Wording(
            "default_of_all_brokers",
            "Left over, and set as the default of all brokers.",
            (),
            fixed("left over as the default of all brokers, which no plan touches"),
        ),
    )
)
"""Codes of desired_configs.blocked_reason."""
