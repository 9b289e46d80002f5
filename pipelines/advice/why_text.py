"""The limits that `quotaflow why` reads, as sentences: what limits, what throttled, what helps."""

from collections.abc import Iterator

from quotaflow.pipelines.advice.why import ClientLimit, ClientLimits, Row
from quotaflow.pipelines.feedback.kafka_configs import Connection, quota_command
from quotaflow.pipelines.reasons import accused_burst
from quotaflow.udfs.rules.quota import DEFAULT, LEVELS, NAMED, QuotaEntity, raised

_UNITS = {
    "producer_byte_rate": "bytes/s",
    "consumer_byte_rate": "bytes/s",
    "request_percentage": "% of a thread",
    "controller_mutation_rate": "partitions/s",
}
_NEARLY = 0.9
_MINUTE_S = 60


def sentences(limits: ClientLimits, connection: Connection) -> Iterator[str]:
    """The explanation, most urgent sentence first; at least one sentence."""
    throttled = [limited for limited in limits.limits if limited.usage["all_throttled_requests"]]
    for limited in throttled:
        yield from _throttled(limited)
    for limited in limits.limits:
        if limited.usage["quota"] is not None:
            yield from _limit_text(limited, connection)
    if limits.producer_ids:
        yield _producing(limits.producer_ids)
    for row in limits.accused_bursts:
        yield f"{accused_burst(row)}. See producer_id_offenders for what a plan may limit."
    if not throttled:
        yield "Nothing throttled it in this time." + _unbound(limits)


def _unbound(limits: ClientLimits) -> str:
    if any(limited.usage["quota"] is not None for limited in limits.limits):
        return ""
    if limits.is_snapshot_taken:
        return " No client quota binds it."
    return " Which client quotas bind it is not known: `quotaflow snapshot` looks them up."


def quota_entity(row: Row) -> QuotaEntity:
    """The entity that the effective quota was set on."""
    of_user, of_client_id = LEVELS[row["quota_level"] - 1]
    return QuotaEntity(
        user=row["quota_bucket_user"] if of_user == NAMED else None,
        is_default_user=of_user == DEFAULT,
        client_id=row["quota_bucket_client_id"] if of_client_id == NAMED else None,
        is_default_client_id=of_client_id == DEFAULT,
    )


def entity_text(entity: QuotaEntity) -> str:
    """A quota entity in words."""
    parts = [
        f"user {entity.user}" if entity.user is not None else "",
        "the default user" if entity.is_default_user else "",
        f"client id {entity.client_id}" if entity.client_id is not None else "",
        "the default client id" if entity.is_default_client_id else "",
    ]
    return " with ".join(part for part in parts if part)


def _client_text(row: Row) -> str:
    client = row["client_id"]
    return f"{row['principal']} as {client}" if client else f"{row['principal']}"


def _throttled(limited: ClientLimit) -> Iterator[str]:
    row = limited.usage
    by = row["mostly_throttled_by"]
    cause = f"most likely by its {by}" if by else "by a quota no snapshot knows of"
    yield (
        f"{_client_text(row)}: {row['all_throttled_requests']} of {row['all_requests']} requests "
        f"charged to {row['quota_type']} were throttled, "
        f"{row['all_throttle_time_ms']:,.0f} ms in all, {cause}."
    )


def _limit_text(limited: ClientLimit, connection: Connection) -> Iterator[str]:
    row = limited.usage
    unit, entity = _UNITS[row["quota_type"]], quota_entity(row)
    share = row["quota_bucket_usage"] / row["quota"]
    about = "about " if row["is_estimated"] else ""
    where = "the controller" if row["broker_id"] is None else f"broker {row['broker_id']}"
    yield (
        f"{_client_text(row)}: {entity_text(entity)} may use {row['quota']:,.6g} {unit} of "
        f"{row['quota_type']} at each broker; {_when(row)} its bucket used "
        f"{about}{row['quota_bucket_usage']:,.6g} at {where} ({share:.0%})."
    )
    if row["enforcement"] == "callback":
        yield "The brokers have a client.quota.callback.class: this is not enforced by stock rules."
    holds = share >= _NEARLY or row["mostly_throttled_by"] == row["quota_type"]
    if holds or row["all_throttled_requests"]:
        yield from _shared(limited)
    if holds:
        part = row["all_throttled_requests"] / max(row["all_requests"], 1)
        quota = raised(row["quota"], row["quota_bucket_usage"], part)
        command = quota_command(entity, row["quota_type"], quota, connection)
        yield (
            f"To let more through, send less at once, spread over more brokers (each has its own "
            f"bucket), or raise the quota step by step: {command}"
        )


def _when(row: Row) -> str:
    """The window, or the minute or hour with the window."""
    if not row["rolled_up_s"]:
        return f"at {row['event_time']:%H:%M:%S} UTC"
    unit = "minute" if row["rolled_up_s"] == _MINUTE_S else "hour"
    return f"in the {unit} from {row['event_time']:%H:%M} UTC"


def _shared(limited: ClientLimit) -> Iterator[str]:
    row = limited.usage
    others = [s for s in limited.sharers if _client_text(s) != _client_text(row)]
    if others:
        shown = ", ".join(f"{_client_text(s)} ({s['usage']:,.6g})" for s in others)
        more = f" and {limited.more_sharers} more" if limited.more_sharers else ""
        yield f"It shares that bucket with {shown}{more}."


def _producing(row: Row) -> str:
    return (
        f"{row['principal']} took new producer ids at {row['rate_per_s']:.1f} per second at broker "
        f"{row['broker_id']}, and conf allows {row['quota_per_s']:g}: over it for {row['seconds']} "
        "s. No stock broker throttles that (KIP-936); see the view producer_id_advice."
    )
