"""The whole pipeline on a real cluster: what tables hold is what the clients did."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from quotaflow.demo import raw_pushes
from quotaflow.demo.broker_config import REQUEST_LOG_TOPIC
from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines import config
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.monitoring import health
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.streaming import sources
from quotaflow.pipelines.warehouse import spark_reader, views
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ..invariants.computed import everything
from ..invariants.statements import problems
from .drive import Run
from .tables_read import query

IDS = (
    "SELECT principal, count(DISTINCT producer_id) AS ids FROM requests "
    "WHERE api = 'INIT_PRODUCER_ID' AND error_code = 0 GROUP BY principal"
)


NOT_FILLED = {
    *("quarantine", "plans", "config_changes", "feedback_locks", "quality_results"),
    *("quota_proposals", "subscription_proposals", "throttle_checks", "expiration_proposals"),
    *("throttled_replica_proposals", "replication_proposals", "default_quota_proposals"),
    "offender_proposals",
    *("moving_replicas", "leftover_proposals", "group_assignments", "share_fetches"),
    *("remote_reads", "remote_read_advice", "producer_rack_advice", "replica_advice"),
    *("cluster_symptoms", "needless_costs", "why_groups_lag", "producer_id_offenders"),
}
"""By what cannot be read, by brokers without remote storage, by clients without a rack, by what is
well, by plan and apply, by check, by advice that nobody needs here, and by a snapshot that falls
into a move, or that finds members that have not left yet. The share consumer may end before its
first fetch, as the first share group of a cluster: test_share_groups waits. A busy machine spreads
the ids of an offender over two minutes, and then none of them has too many: test_producer_id_limit
waits."""


@pytest.mark.parametrize("table", [name for name in TABLES if name not in NOT_FILLED])
def test_every_table_has_rows(filled: Path, table: str) -> None:
    assert query(filled, f"SELECT count(*) AS n FROM {table}")[0]["n"] > 0


@pytest.mark.shows("measures its own throughput against alternatives (`make bench`)")
def test_every_shipped_line_is_accounted_for(filled: Path, run: Run) -> None:
    rows = query(
        filled,
        "SELECT outcome, sum(row_count) AS n FROM pipeline_progress "
        "WHERE job = 'ingest_request_log' AND (target IS NULL OR target = 'requests') "
        "GROUP BY outcome",
    )
    counts = Counter({row["outcome"]: row["n"] for row in rows})
    assert counts["in"] == run.line_counts.acked
    assert counts["in"] == counts["out"] + counts["left_out"] + counts["quarantined"]
    assert query(filled, "SELECT count(*) AS n FROM requests")[0]["n"] == counts["out"]
    unreadable = sum(not wrong.is_readable for wrong in raw_pushes.PUSHES.values())
    assert counts["quarantined"] == 0
    assert query(filled, "SELECT count(*) AS n FROM quarantine")[0]["n"] == unreadable


def test_every_batch_of_every_job_is_told_and_nothing_is_left_unread(
    filled: Path, run: Run, login: list[str]
) -> None:
    (counts,) = query(
        filled,
        "SELECT sum(rows_in) AS n, sum(rows_out) > 0 AS wrote, min(duration_ms) > 0 AS took "
        "FROM batches WHERE job = 'ingest_request_log'",
    )
    assert counts == {"n": run.line_counts.acked, "wrote": True, "took": True}
    now = datetime.now(UTC)
    status = health.read(config.load(overrides=[*login, f"warehouse.path={filled}"]), now)
    jobs = {job.job: job for job in status.jobs}
    assert set(jobs) == {*JOBS, "snapshot"} - {"ingest_otlp", "forward_metrics"}
    assert {name for name, job in jobs.items() if job.behind_s} == set()
    assert all(
        job.last_trigger and job.last_trigger > now - timedelta(hours=1) for job in jobs.values()
    )
    assert (status.lock_holder, status.overdue_configs) == (None, 0)


@pytest.mark.shows("counts the same ids exactly beside the filter")
def test_producer_ids_are_those_that_brokers_gave(filled: Path, run: Run) -> None:
    ids = {row["principal"]: row["ids"] for row in query(filled, IDS)}
    for user in ("alice", "bob", "mallory", "dave", "erin", "frank", "grace"):
        assert ids[f"User:{user}"] == run.ids_given(f"User:{user}")
    rated = query(
        filled,
        "SELECT principal, sum(new_ids_exact) AS exact, sum(new_ids) AS filtered "
        "FROM producer_id_rates WHERE kind = 'allocation' GROUP BY principal",
    )
    exact = {row["principal"]: row["exact"] for row in rated}
    assert {row["principal"]: row["filtered"] for row in rated} == exact
    # As in KIP-936, an id counts again that its transactions name after a pause.
    assert exact.keys() == ids.keys()
    assert all(exact[name] >= ids[name] for name in IN_TRANSACTIONS)
    assert {k: v for k, v in exact.items() if k not in IN_TRANSACTIONS} == {
        k: v for k, v in ids.items() if k not in IN_TRANSACTIONS
    }


IN_TRANSACTIONS = {"User:bob", "User:frank"}
CAUSES = {
    "User:erin": "restart_loop",
    "User:frank": "transactional_id_churn",
    "User:grace": "deploy_burst",
    "User:mallory": "producer_per_batch",
}


@pytest.mark.shows("names the cause of a burst of ids")
def test_each_burst_of_new_ids_has_its_cause_and_nobody_else_is_accused(filled: Path) -> None:
    bursts = query(filled, "SELECT principal, cause, is_accused FROM producer_id_bursts")
    assert {row["principal"]: row["cause"] for row in bursts} == CAUSES
    accused = {row["principal"] for row in bursts if row["is_accused"]}
    assert accused == CAUSES.keys() - {"User:grace"}
    sql = "SELECT principal, recommended_rate_per_s FROM producer_id_advice"
    advised = query(filled, f"{sql} WHERE recommended_by <> 'protected'")
    assert {row["principal"] for row in advised} > CAUSES.keys()
    assert all(row["recommended_rate_per_s"] > 0 for row in advised)


@pytest.mark.shows("shows tokens and throttle time of a quota that no broker has")
def test_who_burst_stands_out_in_the_rates_and_a_deploy_not_in_the_plan(filled: Path) -> None:
    violators = query(filled, "SELECT DISTINCT principal FROM producer_id_rates WHERE is_violating")
    assert {row["principal"] for row in violators} == CAUSES.keys()
    blamed = query(filled, "SELECT DISTINCT principal FROM recent_violations")
    assert {row["principal"] for row in blamed} == CAUSES.keys() - {"User:grace"}
    # Seconds of traffic are no habit.
    desired = query(filled, "SELECT entity_name FROM desired_configs WHERE blocked_reason IS NULL")
    assert desired == []


@pytest.mark.parametrize(
    "client_id", ["rdk-orders-alice", "rdk-payments-bob", "rdk-orders-carol", "rdk-exports-dave"]
)
def test_pushes_are_those_the_client_made_on_both_routes(
    filled: Path, run: Run, client_id: str
) -> None:
    of_client = f"WHERE client_id = '{client_id}' AND NOT terminating"
    routes = query(
        filled, f"SELECT route, count(*) AS n FROM telemetry_pushes {of_client} GROUP BY route"
    )
    # A broker logs no request whose client went before the answer, as a throttled one may.
    lines = run.logged("PUSH_TELEMETRY", client_id)
    logged = sum(not line["request"]["terminating"] for line in lines)
    (unique,) = query(filled, f"SELECT count(*) AS n FROM unique_pushes {of_client}")
    pushes = unique["n"]
    assert {row["route"]: row["n"] for row in routes} == {"request_log": logged, "receiver": pushes}
    # It does not count a push that it sends while it closes.
    sent = run.client(client_id).pushes
    assert sent is not None
    assert sent <= pushes <= sent + 1


@pytest.mark.shows("decodes a push once, though it comes on two routes or regrouped by a Collector")
def test_the_same_push_on_two_routes_is_decoded_once(filled: Path) -> None:
    doubled = query(
        filled,
        "SELECT client_instance_id, metric, event_time, attributes, accepted, count(*) AS n "
        "FROM client_metrics GROUP BY 1, 2, 3, 4, 5 HAVING count(*) > 1",
    )
    assert doubled == []


@pytest.mark.parametrize("client_id", ["java-orders-alice"])
def test_records_sent_are_what_the_producer_pushed(filled: Path, run: Run, client_id: str) -> None:
    # Java counts a record each time it sends it, and its retries apart.
    sent, retried = (
        query(
            filled,
            "SELECT coalesce(sum(increase), 0) AS records FROM metric_totals WHERE "
            f"client_id = '{client_id}' "
            f"AND metric = 'org.apache.kafka.producer.topic.record.{counted}.total'",
        )[0]["records"]
        for counted in ("send", "retry")
    )
    (coverage,) = query(
        filled,
        "SELECT coalesce(bool_and(state = 'terminated' AND missing_pushes = 0), false) AS complete "
        f"FROM client_coverage WHERE client_id = '{client_id}'",
    )
    acked = sum(run.client(client_id).records_acked.values())
    # What Java counted for a push that gets no answer comes with no later one.
    assert sent - retried == acked or (not coverage["complete"] and sent - retried < acked)


def test_bytes_sent_are_those_of_the_brokers_log(filled: Path) -> None:
    client_id = "java-orders-alice"
    (sent,) = query(
        filled,
        "SELECT sum(increase) AS bytes FROM metric_totals WHERE "
        f"client_id = '{client_id}' AND metric = 'org.apache.kafka.producer.topic.byte.total'",
    )
    of_client = f"FROM requests WHERE api = 'PRODUCE' AND client_id = '{client_id}'"
    logged = sum(
        partition["bytes"]
        for row in query(filled, f"SELECT partitions {of_client}")
        for partition in row["partitions"]
    )
    # A batch that is sent again counts again on both sides, but not the one that was lost.
    assert sent["bytes"] == pytest.approx(logged, rel=0.05)
    assert logged > 100_000


@pytest.mark.parametrize(
    ("client_id", "rack"), [("rdk-orders-carol", "az-c"), ("java-orders-bob", "az-b")]
)
def test_fetches_by_rack_are_those_of_the_brokers_log(
    filled: Path, run: Run, client_id: str, rack: str
) -> None:
    rows = query(
        filled,
        "SELECT rack_id, count(*) AS n FROM requests "
        f"WHERE api = 'FETCH' AND client_id = '{client_id}' GROUP BY rack_id",
    )
    assert {row["rack_id"]: row["n"] for row in rows} == {rack: len(run.logged("FETCH", client_id))}


def test_subscriptions_are_what_clients_were_answered(filled: Path) -> None:
    answers = query(
        filled,
        "SELECT DISTINCT push_interval_ms, delta_temporality, requested_metrics "
        "FROM telemetry_subscriptions WHERE client_id = 'rdk-orders-carol' AND error_code = 0",
    )
    answer = {"push_interval_ms": 1_000, "delta_temporality": True, "requested_metrics": ["*"]}
    assert answer in answers
    ids = "subscription_id = expected_subscription_id AS same"
    (same,) = query(filled, f"SELECT DISTINCT {ids} FROM telemetry_subscriptions")
    assert same == {"same": True}


def test_statements_about_all_tables_and_views_are_true(filled: Path) -> None:
    warehouse = Warehouse(config.WarehouseSection(path=str(filled)))
    assert problems(everything(warehouse)) == {}


def test_no_secret_reached_a_table(filled: Path, cluster: LocalCluster) -> None:
    users = ("admin", "alice", "bob", "carol", "mallory", "dave", "shipper")
    secrets = [cluster.librdkafka_properties(user)["sasl.password"].encode() for user in users]
    files = [path for path in filled.rglob("*") if path.is_file()]
    bodies = str(query(filled, "SELECT body FROM requests WHERE body IS NOT NULL")).encode()
    texts = [bodies, *(path.read_bytes() for path in files)]
    assert not [secret for secret in secrets for text in texts if secret in text]


@pytest.fixture(scope="module")
def in_spark(filled: Path, spark: SparkSession) -> SparkSession:
    """The session, with every table and view by its name."""
    warehouse = Warehouse(config.WarehouseSection(path=str(filled)))
    spark_reader.register(spark, warehouse, " ".join([*TABLES, *views.load()]))
    return spark


def of_jobs(view: str) -> bool:
    """Whether jobs make the tables of a view; those of `check` are made by `check` alone."""
    return "quality_results" not in views.dependencies(f"SELECT * FROM {view}")[0]


# Minutes of planning; in the gate each view answers alike over made rows (test_views_alike).
@pytest.mark.faults
@pytest.mark.parametrize("view", [view for view in views.load() if of_jobs(view)])
@pytest.mark.shows("answers questions by views, alike in Spark and DuckDB")
def test_a_view_answers_alike_in_both_engines(
    filled: Path, in_spark: SparkSession, view: str
) -> None:
    sql = f"SELECT * FROM {view}"
    expected = Counter(comparable(row) for row in query(filled, sql))
    assert Counter(comparable(row) for row in in_spark.sql(sql).toArrow().to_pylist()) == expected


def comparable(value: Any) -> str:
    """A value as text that the engines agree on: sums of doubles differ in their last digits."""
    match value:
        case dict():
            return repr(sorted((key, comparable(each)) for key, each in value.items()))
        case list() | tuple():
            return repr([comparable(each) for each in value])
        case float():
            return f"{value:.9g}"
        case datetime():
            return value.astimezone(UTC).isoformat()
        case _:
            return repr(value)


def test_a_topic_is_read_by_more_tasks_than_it_has_partitions_and_each_record_once(
    conf: Conf, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sources, "RECORDS_PER_TASK", 500)
    spark = session.get(conf.spark)
    records = sources.read_topic(spark, conf.kafka, REQUEST_LOG_TOPIC, 200_000).select(
        "partition", "offset", F.spark_partition_id().alias("task")
    )
    batches: list[list[Row]] = []
    writer = records.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    taken = writer.foreachBatch(lambda frame, _: batches.append(frame.collect()))
    taken.trigger(availableNow=True).start().awaitTermination()
    places = [(row["partition"], row["offset"]) for batch in batches for row in batch]
    assert len(places) == len(set(places)) >= run.line_counts.acked
    tasks = Counter((n, row["task"]) for n, batch in enumerate(batches) for row in batch)
    assert max(tasks.values()) <= 500
    assert len(tasks) > 3 * len(batches)
