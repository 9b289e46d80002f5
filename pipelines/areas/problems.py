"""Every kind of problem that rows of tables show, the worst first."""

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
