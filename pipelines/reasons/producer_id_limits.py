"""Codes of desired_configs about producer ids: their harm, what stops it, what forbids that."""

from quotaflow.pipelines.reasons.producer_id_bursts import accusation
from quotaflow.pipelines.reasons.wording import (
    UNKNOWN,
    Row,
    Wording,
    cut,
    fixed,
    name,
    number,
    numbered,
    size,
)
from quotaflow.udfs.counted import noun

_ADDRESS = "ip"
_EVIDENCE = ("observed", "bound", "unit", "matching", "broker_id", "reason_detail", "subject")
_MB = 1e6
_HOUR_MS = 3_600_000


def _offender(row: Row) -> str:
    cause = row["reason_detail"]
    ids = numbered(row, "matching", "producer id")
    return accusation(name(row, "subject"), ids, None if cause is None else cut(cause))


def _expected(row: Row) -> str:
    """What a limit of new connections comes to: each broker takes the value for itself."""
    if row["entity_type"] != _ADDRESS:
        return ""
    at_all, value = UNKNOWN, name(row, "config_value")
    if row["total"] is not None and row["config_value"] is not None:
        at_all = f"{float(row['config_value']) * row['total']:g}"
    return (
        f"; every broker takes {value} new {noun(value, 'connection')} per second from the "
        f"address then, which is {at_all} per second at {numbered(row, 'total', 'broker')}"
    )


def _fill_heap(row: Row) -> str:
    return (
        f"{_offender(row)}; producer ids come to {size(row, 'observed')} of heap at "
        f"broker {number(row, 'broker_id')}, and {size(row, 'bound')} are the bound"
        f"{_expected(row)}"
    )


def _slow_clients(row: Row) -> str:
    return (
        f"{_offender(row)}; clients of broker {number(row, 'broker_id')} wait: p99 of PRODUCE "
        f"{number(row, 'produce_p99_ms')} ms, usually {number(row, 'usual_produce_p99_ms')}, of "
        f"FETCH {number(row, 'fetch_p99_ms')} ms, usually {number(row, 'usual_fetch_p99_ms')}, "
        f"partitions down to their min.insync.replicas {number(row, 'shrunk_partitions')}"
        f"{_expected(row)}"
    )


def _over_quota(row: Row) -> str:
    return (
        f"{_offender(row)}; that is {number(row, 'observed', 3)} per second on broker "
        f"{number(row, 'broker_id')}, its quota is {number(row, 'bound', 3)}{_expected(row)}"
    )


def _of_many(row: Row) -> str:
    cause = UNKNOWN if row["reason_detail"] is None else cut(row["reason_detail"])
    harm = (
        f"producer ids come to {size(row, 'observed')} of heap at broker "
        f"{number(row, 'broker_id')}, and {size(row, 'bound')} are the bound"
        if row["unit"] == "bytes"
        else f"clients of broker {number(row, 'broker_id')} wait: p99 of PRODUCE "
        f"{number(row, 'observed')} ms, usually {number(row, 'bound')}"
    )
    return (
        f"{numbered(row, 'matching', 'user takes', 'users take')} producer ids faster than the "
        f"default, and a plan limits {number(row, 'total')} of them one by one; most are of "
        f"{name(row, 'subject')}, cause: {cause}; {harm}"
    )


def _outlast_heap(row: Row) -> str:
    return (
        f"producer ids come to {size(row, 'observed')} of heap at broker "
        f"{number(row, 'broker_id')} before they expire, and {size(row, 'bound')} are "
        f"the bound; they expire after {number(row, 'matching', 1, _HOUR_MS)} h now, and "
        f"{number(row, 'total', 1, _HOUR_MS)} h cost no producer its id that snapshots have seen. "
        "The price: what a producer retries after a longer pause may be stored twice"
    )


REASONS = (
    Wording(
        "producer_ids_fill_heap",
        "A source takes producer ids that will fill brokers' heap past its bound.",
        (*_EVIDENCE, "total"),
        _fill_heap,
    ),
    Wording(
        "producer_ids_slow_clients",
        "A source takes producer ids while clients of a broker wait longer than usual.",
        (
            *_EVIDENCE,
            "total",
            "produce_p99_ms",
            "usual_produce_p99_ms",
            "fetch_p99_ms",
            "usual_fetch_p99_ms",
            "shrunk_partitions",
        ),
        _slow_clients,
    ),
    Wording(
        "producer_ids_over_quota",
        "A source takes new producer ids faster than its quota, and no harm is measured.",
        (*_EVIDENCE, "total"),
        _over_quota,
    ),
    Wording(
        "producer_ids_of_many",
        "More users than a plan limits one by one take producer ids that do harm.",
        (*_EVIDENCE, "total"),
        _of_many,
    ),
    Wording(
        "producer_ids_outlast_heap",
        "Producer ids expire too late for the heap of a broker.",
        ("observed", "bound", "unit", "matching", "total", "broker_id"),
        _outlast_heap,
    ),
)

_OF_OFFENDER = ("evidence_key",)
_SEE = "see producer_id_offenders"

BLOCKED_REASONS = tuple(
    Wording(code, meaning, _OF_OFFENDER, fixed(words))
    for code, meaning, words in (
        (
            "offence_too_short",
            "The source was over its quota in too few minutes: first the advice has to work.",
            "over its quota in less than plan.offence_share of the minutes of "
            "plan.offence_period_s: the advice goes first",
        ),
        (
            "no_harm",
            "Neither the heap of a broker nor its clients suffer, or not from this source.",
            "no harm is measured: the heap forecast fits (producer_ids.max_heap_share), and no "
            "broker's clients waited longer than usual while it took ten ids per second there; or "
            "its part in that is under a tenth",
        ),
        (
            "clients_hidden",
            "Addresses or client ids are pseudonyms, so nobody knows whom a limit reaches.",
            "privacy.columns hides addresses or client ids: nobody knows whom a limit reaches",
        ),
        (
            "requests_sampled",
            "Ingest samples requests, so other clients of the address may not show.",
            "ingest.sampling leaves requests out: other clients of the address may not show",
        ),
        (
            "address_history_short",
            "What is recorded of addresses does not reach back far enough.",
            "requests are recorded for less than plan.address_history_s without a gap: others may "
            "use the address",
        ),
        (
            "protected_address",
            "The address is a broker's, quotaflow's own, a shipper's, or one that each machine "
            "has, or conf protects it.",
            "the address is that of a broker, of a principal that no plan limits, or of "
            "producer_ids.protected_addresses, or each machine has it (such as 127.0.0.1)",
        ),
        (
            "other_principals",
            "Other principals use the address.",
            f"other principals use the address too: {_SEE}; to limit it all the same, list it in "
            "producer_ids.limited_addresses",
        ),
        (
            "other_programs",
            "Other programs of the principal move records from the address, or it moves far more "
            "than its ids explain.",
            "more records move from the address than its ids explain, so another program of the "
            "principal may work there: "
            f"{_SEE}; to limit it all the same, list it in producer_ids.limited_addresses",
        ),
        (
            "program_elsewhere",
            "The program runs at other addresses too, and its quota would slow it there.",
            "its client id is used at other addresses too, which a quota of it would slow",
        ),
        (
            "many_client_ids",
            "The loop has many client ids, and a quota binds one.",
            "it keeps its connection, so that a limit of new connections does nothing, and has "
            "many client ids, of which a quota binds one",
        ),
        (
            "usage_unknown",
            "The loop keeps its connection, and what brokers charge for its requests is not known.",
            "it keeps its connection, so that only request_percentage of its client id can hold "
            "it, and the request log does not have all request time that brokers charge",
        ),
        (
            "default_slows_others",
            "The default of all users would slow a principal that does not offend.",
            "a principal that does not offend took ids faster than the default, and has no "
            "producer_ids_rate of its own: see default_quota_proposals; set one for it first",
        ),
        (
            "default_history_short",
            "What is recorded does not show for long enough whom the default would slow.",
            "requests are recorded for less than plan.address_history_s without a gap: nobody "
            "knows whom the default of all users slows",
        ),
        (
            "default_quota_off",
            "Conf's plan.default_quotas is false.",
            "plan.default_quotas of conf is false",
        ),
        (
            "expiration_not_managed",
            "Conf's producer_ids.manage_expiration is false.",
            "producer_ids.manage_expiration of conf is false",
        ),
    )
)
