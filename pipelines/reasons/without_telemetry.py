"""The codes of clients_without_telemetry.reason: why a client pushes no metrics (KIP-714)."""

from quotaflow.pipelines.reasons.wording import Row, Wording, by_code, name, worded


def telemetry_step(row: Row) -> str:
    """What a row of clients_without_telemetry says, and what makes the client push."""
    return worded(NO_TELEMETRY, row["reason"], row)


_SOFTWARE = ("client_software_name", "client_software_version")


def _software(row: Row) -> str:
    return f"{name(row, 'client_software_name')} {name(row, 'client_software_version')}"


NO_TELEMETRY = by_code(
    (
        Wording(
            "too_old",
            "A Java client before 3.7 or Confluent's 7.7, or librdkafka before 2.5.",
            _SOFTWARE,
            lambda row: f"{_software(row)} cannot push metrics: update it",
        ),
        Wording(
            "switched_off",
            "The library can push, and does not.",
            _SOFTWARE,
            lambda row: f"{_software(row)} can push metrics: set enable.metrics.push=true",
        ),
        Wording(
            "other_software",
            "Which versions of the library can push is not known here.",
            _SOFTWARE,
            lambda row: f"whether {_software(row)} can push metrics is not known: ask its makers",
        ),
    )
)
"""Codes of clients_without_telemetry.reason."""
