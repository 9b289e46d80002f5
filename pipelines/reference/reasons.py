"""Every reason code of the views, with its meaning and the columns that are its evidence."""

from quotaflow.pipelines.reasons import WORDINGS, Wording

_HEAD = """\
# Reason codes

This page is a reference for engineers who read a reason code in a view, a plan or the report. It
answers: what does the code mean, and which columns show it?

A view has a code, and columns with the numbers and names that are its evidence. `quotaflow plan`,
`quotaflow why` and the report make sentences of both. In SQL, read the code and its evidence:

```sql
SELECT * FROM desired_configs ORDER BY priority, entity_type, entity_name, config_key
```

`quotaflow ddl desired_configs` describes each column with its unit. Columns that are not evidence
of a row's codes say nothing about it. A plan has reasons of its own too:
[what a plan never does](../applying.md#what-a-plan-never-does).
"""
_TITLES = {
    ("desired_configs", "reason_code"): "Why a config should change",
    ("desired_configs", "blocked_reason"): "Why a config is not planned",
    ("producer_id_bursts", "cause"): "What caused a burst of producer ids",
    ("producer_id_advice", "recommended_by"): "Where a recommended rate is from",
    ("other_config_managers", "evidence_code"): "What shows another program",
    ("fetch_advice", "trade_off"): "What gets worse with a fetch setting",
    ("fetch_advice", "advice"): "Which fetch setting to change",
    ("replica_advice", "advice"): "What keeps reads in their rack",
    ("producer_rack_advice", "advice"): "What keeps produced bytes in their rack",
    ("remote_read_advice", "advice"): "What spares reads of remote storage",
    ("read_problems", "advice"): "What ends problems of reads",
    ("clients_without_telemetry", "reason"): "Why a client pushes no metrics",
    ("rebalances", "trigger"): "What made a group rebalance",
    ("why_groups_lag", "cause"): "Why a group lags",
}


def text() -> str:
    """The page, in Markdown. Raises KeyError for a column of codes that has no title."""
    parts = [_HEAD]
    for place, wordings in WORDINGS.items():
        parts += [f"## {_TITLES[place]}: `{'.'.join(place)}`\n"]
        parts += ["| code | means | evidence |", "| --- | --- | --- |"]
        parts += [*map(_row, wordings.values()), ""]
    return "\n".join(parts)


def _row(wording: Wording) -> str:
    evidence = ", ".join(f"`{name}`" for name in wording.evidence)
    return f"| `{wording.code}` | {wording.meaning} | {evidence} |"
