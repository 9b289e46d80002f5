"""Levels: what a cluster lets this pipeline read, from its Admin API alone to every request.

Each level has all that those before it have. A table is of the first level at which it can have
rows, and so are answers and results. A view says from which level on it has rows; of a whole log,
if a sample of its lines would mislead.
"""

ADMIN_API, TELEMETRY, SAMPLED_LOG, WHOLE_LOG = (
    "admin_api",
    "telemetry",
    "sampled_log",
    "whole_log",
)
LEVELS = (ADMIN_API, TELEMETRY, SAMPLED_LOG, WHOLE_LOG)
"""All levels, the least first."""

IN_WORDS = {
    ADMIN_API: "the Admin API alone",
    TELEMETRY: "client telemetry",
    SAMPLED_LOG: "a request log, sampled or whole",
    WHOLE_LOG: "a whole request log",
}
"""What a level needs, in words."""
