"""Columns of a dashboard's tables, with every key that Databricks writes when it saves one.

A table widget (version 1) reads its columns as its own editor saves them. So each has all keys, and
the type of its values.
"""

from typing import Any


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_INTEGERS = _names("""
    behind_bytes behind_offsets broker_id checked_rows clients current_value duration_ms failed_rows
    found ids lag lagging_minutes largest_response_max_bytes matching max_throttle_time_ms new_ids
    partition priority rank recommended_value redirect_loop_answers replica_id replicas resets
    response_max_bytes row_count rows_failed rows_in rows_late rows_left_out rows_out
    rows_quarantined rows_refused source_ids throttled_requests too_small_answers total windows_over
    windows_throttled
""")
_NUMBERS = _names("""
    age_s amount bound bytes_left bytes_per_s caught_up_in_s confidence cost eta_s
    expected_fetches_per_s fetches_per_s lag_s max_rate_per_s median_gap_ms observed peak_percent
    peak_usage peak_value processed_rows_per_s quota quota_per_s rate recommended_rate_per_s
    records_in_per_s records_out_per_s replica_bytes_per_hour requests_per_id saved_bytes_per_hour
    throttled_s
""")
_BOOLEANS = _names("is_accused is_done is_open")
_TIMES = _names("""
    event_time expires_at first_breach last_seen last_trigger newest_event_time requested_time
""")
_LISTS = _names("evidence")
_VALUE = "{{ @ }}"
Json = dict[str, Any]


def column(field: str, place: int) -> Json:
    """A column of a table. What clients choose is shown as text: neither as HTML nor as a link."""
    title = field.replace("_", " ")
    return {
        "fieldName": field,
        "title": title,
        "displayName": title,
        "order": place,
        "visible": True,
        "allowHTML": False,
        "allowSearch": False,
        "booleanValues": ["false", "true"],
        "highlightLinks": False,
        "imageHeight": "",
        "imageTitleTemplate": _VALUE,
        "imageUrlTemplate": _VALUE,
        "imageWidth": "",
        "linkOpenInNewTab": True,
        "linkTextTemplate": _VALUE,
        "linkTitleTemplate": _VALUE,
        "linkUrlTemplate": _VALUE,
        "preserveWhitespace": False,
        "useMonospaceFont": False,
        **_shown(field),
    }


def _shown(field: str) -> Json:
    """The type of a column, and how its values are shown."""
    if field in _INTEGERS:
        return _kind("integer", "number", "right", numberFormat="0")
    if field in _NUMBERS:
        return _kind("float", "number", "right", numberFormat="0.00")
    if field in _TIMES:
        return _kind("datetime", "datetime", "right", dateTimeFormat="YYYY-MM-DD HH:mm:ss")
    if field in _BOOLEANS:
        return _kind("boolean", "boolean", "left")
    if field in _LISTS:
        return _kind("complex", "json", "left")
    return _kind("string", "string", "left")


def _kind(kind: str, display: str, align: str, **formats: str) -> Json:
    return {"type": kind, "displayAs": display, "alignContent": align, **formats}
