"""Metrics of an application's own and of Kafka Streams, as the tables show them (KIP-1076)."""

from pathlib import Path

from . import application
from .drive import Run
from .tables_read import query

SHOP = "org.apache.kafka.shop."


def test_registered_metrics_come_as_they_were_recorded(filled: Path) -> None:
    rows = query(
        filled,
        "SELECT DISTINCT client_id, metric, kind, temporality, map_values(attributes) AS tagged, "
        f"value, value_int, unit, in_catalogue FROM client_metrics WHERE metric LIKE '{SHOP}%' "
        "ORDER BY metric, value DESC",
    )
    in_lyon, unknown = ["lyon"], (None, False)
    # A sum's first push says all that was added before it; a gauge of text is never pushed.
    sold = (application.PRODUCER, f"{SHOP}sold.total", "sum", "delta", in_lyon)
    assert [tuple(row.values()) for row in rows] == [
        (application.CONSUMER, f"{SHOP}load", "gauge", None, [], 0.25, None, *unknown),
        (application.PRODUCER, f"{SHOP}open.carts", "gauge", None, in_lyon, 7.0, 7, *unknown),
        (*sold, 12.0, None, *unknown),
        (*sold, 0.0, None, *unknown),
    ]


def test_its_own_names_alone_are_unknown(filled: Path) -> None:
    rows = query(
        filled,
        "SELECT kind, name FROM unknown_metrics "
        "WHERE client_software_name = 'apache-kafka-java' ORDER BY name",
    )
    names = [f"{SHOP}load", f"{SHOP}open.carts", f"{SHOP}sold.total"]
    assert rows == [{"kind": "name", "name": name} for name in names]


def test_totals_are_what_the_application_sold_and_streams_read(filled: Path, run: Run) -> None:
    rows = query(
        filled,
        "SELECT metric, sum(increase) AS n FROM metric_totals WHERE metric IN "
        f"('{SHOP}sold.total', 'org.apache.kafka.stream.topic.records.consumed.total') "
        "GROUP BY metric ORDER BY metric",
    )
    assert [row["n"] for row in rows] == [12, run.report.records_acked(application.READS)]


def test_a_streams_application_is_known_by_its_id(filled: Path) -> None:
    rows = query(
        filled,
        "SELECT regexp_replace(client_id, '^.*-(StreamThread-1-|)', '') AS part, client_kind, "
        "application_id, group_id FROM client_instances "
        f"WHERE client_id LIKE '{application.ID}-%-%' ORDER BY part",
    )
    assert [tuple(row.values()) for row in rows] == [
        ("admin", "admin", application.ID, None),
        ("consumer", "consumer", None, application.ID),
        ("producer", "producer", None, None),
    ]


def test_a_streams_application_is_one_row_with_what_it_reports(filled: Path) -> None:
    rows = query(
        filled,
        "SELECT group_type, subscribed_topics, principals, rebalances, instances, "
        "alive_threads >= 0 AS reports_threads, commits > 0 AS has_commits "
        f"FROM streams_applications WHERE application_id = '{application.ID}'",
    )
    assert [tuple(row.values()) for row in rows] == [
        ("classic", [application.READS], ["User:carol"], 1, 1, True, True),
    ]


def test_who_joined_and_what_each_member_reads_and_commits(filled: Path) -> None:
    members = query(
        filled,
        "SELECT client_id, state, rack_id, assignor, subscribed_topics, "
        "cardinality(assigned_partitions) AS n FROM group_membership "
        # A client that loses its connection while it joins asks again, for another member id.
        "WHERE group_id IN ('bob-orders', 'carol-orders') AND state <> 'joining' "
        "ORDER BY client_id",
    )
    assert [tuple(row.values()) for row in members] == [
        ("java-orders-bob", "left", "az-b", "range", [application.READS], 3),
        ("rdk-orders-carol", "left", "az-c", "range", [application.READS], 3),
    ]
    triggers = query(
        filled,
        "SELECT group_type, group_epoch, trigger, trigger_client_id, members, is_complete "
        "FROM rebalances WHERE group_id IN ('carol-orders', 'sharing') AND group_epoch <= 2 "
        "ORDER BY group_type",
    )
    assert [tuple(row.values()) for row in triggers] == [
        ("classic", 1, "member_joined", "rdk-orders-carol", 1, True),
        ("share", 2, "member_joined", "java-sharing", 1, True),
    ]
    (commits,) = query(
        filled,
        "SELECT sum(failed_commits) AS failed, count(DISTINCT partition) AS partitions "
        "FROM group_commits WHERE group_id = 'carol-orders'",
    )
    assert commits == {"failed": 0, "partitions": 3}
