"""`fetch_faults`: faults of answers to consumers, from fetches (KIP-392)."""

import pyarrow as pa

from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import LookupTable, Result, Unnamed
from quotaflow.schemas.table import INT, STRING
from quotaflow.schemas.tables.fetches import FETCHES
from quotaflow.schemas.tables.read_faults import FETCH_FAULTS
from quotaflow.schemas.tables.topology import REPLICAS, TOPICS
from quotaflow.schemas.tables.traffic import TOPIC_NAMES
from quotaflow.udfs.rules.fetch_fault import ERRORS, LOOP_REDIRECTS, SPIN_ANSWERS

_ERRORS = pa.table(
    {"code": list(ERRORS), "name": list(ERRORS.values())},
    schema=pa.schema([pa.field("code", INT), pa.field("name", STRING)]),
)


def result() -> Result:
    """The declaration of the result. Offsets of the minute before are inputs too."""
    return Result(
        table=FETCH_FAULTS,
        rule=texts.rule(
            FETCH_FAULTS,
            "reads/fetch_faults.sql",
            parameters={"loop_redirects": LOOP_REDIRECTS, "spin_answers": SPIN_ANSWERS},
            rows={"fetch_errors": _ERRORS},
        ),
        facts=FETCHES,
        bucket_s=60,
        lookback_s=60,
        lookups=(
            LookupTable(TOPIC_NAMES, valid_from=None),
            *(LookupTable(table, reaches_back=True) for table in (REPLICAS, TOPICS)),
        ),
        unnamed=(Unnamed(FETCH_FAULTS),),
    )
