"""`quality_results`: expectations on the tables, and whether they were met."""

from quotaflow.schemas.levels import ADMIN_API
from quotaflow.schemas.table import BOOLEAN, LONG, STRING, TIMESTAMP, Column, Table

QUALITY_RESULTS = Table(
    name="quality_results",
    comment=(
        "One row per expectation and run of `quotaflow check` that checked its table (view "
        "current_quality has the last of each); a table without new rows is not checked"
    ),
    columns=(
        Column("cluster_id", STRING, "cluster of the checked rows; null: of several, or no rows"),
        Column("event_time", TIMESTAMP, "start of the run"),
        Column("run_id", STRING, "the run"),
        Column("suite", STRING, "table that was checked: each has one suite of expectations"),
        Column("expectation", STRING, "name of the expectation in its suite"),
        Column("column_name", STRING, "columns it is about; null: it is SQL"),
        Column("kind", STRING, "type of the expectation, by great-expectations' name"),
        Column(
            "severity",
            STRING,
            "critical: while it fails, no plan uses evidence of this table; warning",
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
        Column("details", STRING, "what is expected, or why it could not be checked; bounded"),
    ),
    key=("run_id", "suite", "expectation"),
    time="event_time",
    clustering=("event_time", "suite"),
    area="pipeline",
    level=ADMIN_API,
)
