"""Views of the pipeline's own working: a batch counts once, and every job that ran is there."""

from ...rows import at, batch, counted
from .view_tables import picked, view

PROGRESS = {
    "query_progress": [
        batch(0, 0),
        batch(9, 0, run_id="replayed"),
        batch(60, 1, behind_offsets=3),
        batch(90, None),
        batch(4_000, 2, behind_offsets=0),
        batch(4_060, None),
        batch(10, 0, "results", behind_offsets=None, behind_bytes=5),
        # Of runs that read tables before anything told the cluster.
        batch(20, 1, "results", behind_offsets=None, behind_bytes=6, cluster_id=None),
        batch(15, 0, "early", cluster_id=None),
        batch(25, 1, "early"),
        batch(30, 0, "never counted", cluster_id=None),
    ],
    "pipeline_progress": [
        counted(-4, 0, "in", 10),
        counted(-4, 0, "out", 7, target="requests"),
        counted(-4, 0, "out", 1, target="telemetry_pushes"),
        counted(-4, 0, "left_out", 2, reason="raft"),
        counted(-4, 0, "left_out", 3, target="requests", reason="duplicate"),
        counted(-4, 0, "quarantined", 1, reason="not_json"),
        # Of four rows some concern two results.
        counted(3_990, 2, "late", 1, target="traffic", reason="past_max_lateness"),
        counted(3_990, 2, "late", 3, target="traffic", reason="past_retention"),
        counted(3_990, 2, "late", 3, target="quota_usage", reason="past_max_lateness"),
        counted(3_990, 2, "failed", 6, target="traffic", reason="SparkRuntimeException"),
        counted(3_990, 2, "failed", 5, target="quota_usage", reason="SparkRuntimeException"),
        counted(3_990, 2, "refused", 2, target="otlp", reason="answer_400"),
        counted(5, 0, "out", 3, job="results", query_id="q-results"),
        counted(6, 0, "out", 3, job="early", query_id="q-early", cluster_id=None),
        counted(7, 1, "out", 3, job="early", query_id="q-early"),
        counted(70, 1, "out", 3, job="snapshot", query_id="s"),
    ],
}


def test_a_replayed_batch_is_one_and_has_what_became_of_its_rows() -> None:
    actual = view("batches WHERE job = 'facts' ORDER BY batch_id", PROGRESS)
    assert picked(actual, "batch_id", "run_id", "rows_in") == [
        (0, "replayed", 10),
        (1, "r1", 10),
        (2, "r1", 10),
    ]
    assert picked(actual, "rows_out", "rows_left_out", "rows_quarantined", "rows_late") == [
        (8, 5, 1, 0),
        (None, None, None, None),
        (0, 0, 0, 4),
    ]
    assert picked(actual, "rows_duplicate", "rows_failed") == [(3, 0), (None, None), (0, 6)]
    assert picked(actual, "newest_event_age_s") == [(9 + 2 + 4,), (None,), (12,)]


def test_a_job_s_health_is_its_last_look_its_last_batch_and_its_last_hour_of_work() -> None:
    actual = view("job_health ORDER BY job", PROGRESS)
    assert picked(actual, "job", "last_trigger", "last_batch", "newest_event_time") == [
        ("early", at(25), at(25), at(7)),
        ("facts", at(4_060), at(4_000), at(3_990)),
        ("never counted", at(30), at(30), None),
        ("results", at(20), at(20), at(5)),
        ("snapshot", at(70), None, at(70)),
    ]
    facts = actual[1]
    assert picked([facts], "batch_id", "behind_offsets", "batches", "rows_in") == [(2, 0, 1, 10)]
    assert picked([facts], "rows_late", "rows_quarantined", "rows_refused") == [(4, 0, 2)]
    assert picked(actual, "cluster_id", "behind_bytes", "batches") == [
        ("c1", None, 2),
        ("c1", None, 1),
        (None, None, 1),
        ("c1", 6, 2),
        ("c1", None, None),
    ]


def test_batches_of_one_query_may_be_of_several_clusters() -> None:
    clusters = list(enumerate(("c1", "c2", "c1")))
    content = {
        "query_progress": [batch(n, n, cluster_id=each) for n, each in clusters],
        "pipeline_progress": [counted(-n, n, "out", 1, cluster_id=each) for n, each in clusters],
    }
    actual = view("batches ORDER BY batch_id", content)
    assert picked(actual, "cluster_id") == [("c1",), ("c2",), ("c1",)]
    actual = view("job_health ORDER BY cluster_id", content)
    assert picked(actual, "cluster_id", "batches", "newest_event_time") == [
        ("c1", 2, at(0)),
        ("c2", 1, at(-1)),
    ]


def test_an_event_that_is_ahead_of_its_batch_has_no_age() -> None:
    ahead = counted(900, 0, "in", 10)
    rows = view(
        "batches WHERE job = 'facts' AND batch_id = 0", PROGRESS | {"pipeline_progress": [ahead]}
    )
    assert picked(rows, "newest_event_time", "newest_event_age_s") == [(at(900), 0)]
