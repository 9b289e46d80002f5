"""Rows of `requests` about fetches."""


def part(name, offset=None, size=None, end=None, **others):
    """Partition 0 of a topic id: requested from an offset, answered with bytes up to an end."""
    is_requested, answered = offset is not None, size is not None
    return {
        "topic_id": name,
        "partition": 0,
        "in_request": is_requested,
        "in_response": answered,
        "fetch_offset": offset,
        "partition_max_bytes": 100 if is_requested else None,
        "high_watermark": end,
        "bytes": size,
        "error_code": 0 if answered else None,
    } | others


def request(line, offset, **others):
    """The row of a line that a model of a broker gave, read from this offset."""
    requested = {one.partition: one for one in line.requested}
    answered = {one.partition: one for one in line.answered}
    named = [*requested, *(key for key in answered if key not in requested)]
    return {
        "cluster_id": "c",
        "broker_id": 1,
        "event_time": line.time_us,
        "api": "FETCH",
        "principal": "User:alice",
        "client_id": "consumer-a",
        "session_id": line.session_id,
        "session_epoch": line.epoch,
        "response_session_id": line.response_session_id,
        "error_code": line.error_code,
        "max_bytes": 10,
        "isolation_level": 0,
        "partitions": [_partition(key, requested.get(key), answered.get(key)) for key in named],
        "forgotten": [{"topic_id": key, "partition": 0} for key in line.forgotten],
        "source_topic": "logs",
        "source_partition": 0,
        "source_offset": offset,
    } | others


def _partition(key, requested, answered):
    fields = part(key) if requested is None else part(key, requested.fetch_offset)
    if answered is None:
        return fields
    return fields | {
        "in_response": True,
        "bytes": answered.size_bytes,
        "high_watermark": answered.end_offset,
        "error_code": answered.error_code,
    }
