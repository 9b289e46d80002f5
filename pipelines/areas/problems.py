"""Every kind of problem that rows of tables show, the worst first."""

from collections.abc import Iterator, Sequence

from quotaflow.pipelines.areas import (
    diagnoses,
    fetches,
    groups,
    pipeline,
    producer_ids,
    quotas,
    racks,
    reads,
    remote_reads,
    replication,
    telemetry,
)
from quotaflow.pipelines.areas.finding import NOW, Finding, in_cluster
from quotaflow.pipelines.areas.question import Row
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.areas.verdict import TABLES_OF

PROBLEMS = tuple(
    sorted(
        (
            *diagnoses.PROBLEMS,
            *producer_ids.PROBLEMS,
            *quotas.PROBLEMS,
            replication.OUT_OF_SYNC,
            *replication.PROBLEMS,
            *replication.OF_SNAPSHOTS,
            *groups.PROBLEMS,
            *reads.PROBLEMS,
            *telemetry.PROBLEMS,
            *racks.PROBLEMS,
            *fetches.PROBLEMS,
            *remote_reads.PROBLEMS,
            *pipeline.QUALITY,
            *pipeline.PROBLEMS,
        ),
        key=lambda problem: problem.severity,
    )
)
_NO_NAME = {each.code for each in (*diagnoses.PROBLEMS, *pipeline.QUALITY, *pipeline.PROBLEMS)}


def beside_incidents(scope: Scope, incidents: Sequence[Row]) -> Iterator[Finding]:
    """What else may begin the answer about a name: who suffers, and is in no incident."""
    covered = {table for row in incidents for table in TABLES_OF.get(row["symptom"], ())}
    others = [
        each
        for each in PROBLEMS
        if each.severity == NOW and each.code not in _NO_NAME and each.table not in covered
    ]
    scope.gather({"diagnoses", *(each.table for each in others)})
    return in_cluster(scope, others)
