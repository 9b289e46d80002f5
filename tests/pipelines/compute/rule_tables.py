"""The tables that the SQL of a rule reads."""

import re

from quotaflow.pipelines.compute import texts
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.engine.rule import Rule

_COMMENT = re.compile(r"--[^\n]*")
# Fields may have the names of tables, so only what is read counts.
_READ = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)(\([^()]*\))?")


def tables_of(rule: Rule) -> list[str]:
    """The tables that a rule reads by name, facts included, also as arguments of table macros."""
    read = set[str]()
    for sql in texts.texts_of(rule):
        for name, arguments in _READ.findall(_COMMENT.sub(" ", sql)):
            read |= {name, *re.findall(r"\w+", arguments)}
    return [name for name in TABLES if name in read]
