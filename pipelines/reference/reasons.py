"""Every reason code of the views, with its meaning and the numbers and names that show it."""

from quotaflow.pipelines.reasons import Wording, wordings

_HEAD = """\
# Reason codes

This page is a reference for engineers who read a reason code in a view, a plan or the report. It
answers: what does the code mean, and which columns show it?

A view has a code, and columns with the numbers and names that are its evidence; `desired_configs`
has numbers as signals in one column, `evidence`. `quotaflow plan`, `quotaflow why` and the report
make sentences of both. In SQL, read the code and its evidence:

```sql
SELECT * FROM desired_configs ORDER BY priority, entity_type, entity_name, config_key
```

`quotaflow ddl` describes each column, and each signal of an answer that proposes rows. Columns that
are not evidence of a row's codes say nothing about it. A plan has reasons of its own too:
[what a plan never does](../applying.md#what-a-plan-never-does).
"""


def text() -> str:
    """The page, in Markdown."""
    parts = [_HEAD]
    for place, of_column in wordings().items():
        parts += [f"## {of_column.title}: `{'.'.join(place)}`\n"]
        parts += ["| code | means | evidence |", "| --- | --- | --- |"]
        parts += [*map(_row, of_column.by_code.values()), ""]
    return "\n".join(parts)


def _row(wording: Wording) -> str:
    evidence = ", ".join(f"`{name}`" for name in wording.evidence)
    return f"| `{wording.code}` | {wording.meaning} | {evidence} |"
