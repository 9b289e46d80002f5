"""`quality_results`: what was expected of the tables, and whether it was so."""

from quotaflow.schemas.table import BOOLEAN, LONG, STRING, TIMESTAMP, Column, Table

QUALITY_RESULTS = Table(
    name="quality_results",
    comment=(
        "One row per expectation and run of `quotaflow check` that looked at its table (view "
        "current_quality has the last of each); a table in which nothing was new is not looked at"
    ),
    columns=(
        Column("cluster_id", STRING, "cluster of the checked rows; null: of several, or no rows"),
        Column("event_time", TIMESTAMP, "when the run began"),
        Column("run_id", STRING, "the run"),
        Column("suite", STRING, "table that was checked: each has one suite of expectations"),
        Column("expectation", STRING, "name of the expectation in its suite"),
        Column("column_name", STRING, "columns it is about; null: it is told in SQL"),
        Column("kind", STRING, "type of the expectation, by great-expectations' name"),
        Column(
            "severity",
            STRING,
            "critical: while it fails no plan takes what stands on this table; warning",
        ),
        Column("success", BOOLEAN, "the rows are as expected"),
        Column("checked_rows", LONG, "rows of the table from from_time on"),
        Column("failed_rows", LONG, "rows that are not as expected; null: they were not counted"),
        Column(
            "from_time",
            TIMESTAMP,
            "rows were checked from this record_time on, or event_time in tables without one; "
            "null: all of them",
        ),
        Column("until_time", TIMESTAMP, "newest such time among them, not past event_time"),
        Column("details", STRING, "what is expected; or why it could not be told, bounded"),
    ),
    key=("run_id", "suite", "expectation"),
    time="event_time",
    clustering=("event_time", "suite"),
)
