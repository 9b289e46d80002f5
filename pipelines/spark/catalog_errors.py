"""What is wrong with a name or a right in a catalog, in one line that says what to do."""

import re

from quotaflow.pipelines.errors import ConfigError, JobError, QuotaflowError

_PARTS = r"(?P<name>(?:`[^`]+`\.?)+|'[^']+'|[\w.]+)"
_CATALOGS = tuple(
    re.compile(pattern + _PARTS, re.S)
    for pattern in (
        # The catalog of a local session has schemas alone, and takes any other for one of them.
        r"\[REQUIRES_SINGLE_PART_NAMESPACE\].*?identifier ",
        "Nested databases are not supported by v1 session catalog: ",
        r"\[CATALOG_NOT_FOUND\] The catalog ",
        r"\[NO_SUCH_CATALOG_EXCEPTION\] Catalog ",
    )
)
_SCHEMAS = re.compile(r"\[SCHEMA_NOT_FOUND\] The schema " + _PARTS)
_TABLES = re.compile(
    r"\[(?:TABLE_OR_VIEW_NOT_FOUND\] The table or view|DELTA_TABLE_NOT_FOUND\] Delta table) "
    + _PARTS
)
# Unity Catalog says this after [INSUFFICIENT_PERMISSIONS] or PERMISSION_DENIED, and table access
# control of a Hive metastore after the first.
_RIGHTS = re.compile(
    r"does not have (?:permission )?(?P<right>[A-Z][A-Z_ ,]*[A-Z]) on "
    r"(?P<kind>[A-Za-z]+(?: [A-Za-z]+)?)(?: ?(?P<name>'[^']+'|(?:`[^`]+`\.?)+))?"
)


def explained(message: str) -> QuotaflowError | None:
    """The error for a catalog, schema or table that is not there, or a right that is missing.

    Takes the whole message of Spark, or what is around it; None if it is about something else.
    """
    if match := _RIGHTS.search(message):
        right, kind, name = match["right"], match["kind"], _sql_name(match["name"] or "")
        return JobError(
            f"this login lacks {right} on {' '.join([kind.lower(), name]).strip()}: let its owner "
            f"run {_grant(right, kind, name)}; `quotaflow ddl --grants` prints all rights"
        )
    for pattern in _CATALOGS:
        if match := pattern.search(message):
            return _no_catalog(_sql_name(match["name"]))
    if match := _SCHEMAS.search(message):
        return _no_schema(_sql_name(match["name"]))
    if match := _TABLES.search(message):
        name = _sql_name(match["name"])
        return ConfigError(
            f"no table or view {name}, or this login may not see it: correct the name, make it as "
            f"`quotaflow ddl` prints, or let its owner run {_grant('SELECT', 'TABLE', name)}"
        )
    return None


def _no_catalog(name: str) -> QuotaflowError:
    catalog, _, rest = name.partition(".")
    where = f" of {name}" if rest else ""
    return ConfigError(
        f"no catalog {catalog}{where} here: correct warehouse.catalog_schema, or run the command "
        "where that catalog is: by warehouse.sql_warehouse, SPARK_REMOTE, or a job of Databricks"
    )


def _no_schema(name: str) -> QuotaflowError:
    return ConfigError(
        f"no schema {name}, or this login may not use it: correct warehouse.catalog_schema, make "
        f"it with CREATE SCHEMA {name}, or let its owner run {_grant('USE SCHEMA', 'SCHEMA', name)}"
    )


def _grant(right: str, kind: str, name: str) -> str:
    return " ".join(["GRANT", right, "ON", *filter(None, [kind.upper(), name]), "TO `LOGIN`"])


def _sql_name(text: str) -> str:
    """A name as Spark prints it, with as few quotes as SQL takes."""
    parts = re.findall(r"[^`.]+", text) if "`" in text else text.strip("'.").split(".")
    return ".".join(part if re.fullmatch(r"\w*", part) else f"`{part}`" for part in parts)
