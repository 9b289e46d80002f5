"""Relations of files and rows, and what a rule yields of them."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quotaflow.schemas.table import DATE, INT, LONG, STRING, TIMESTAMP
from quotaflow.udfs.engine.connections import connect
from quotaflow.udfs.engine.database import Selection, files_sql, opened
from quotaflow.udfs.engine.rule import Batches, Files, Relation, Rule, Walk

from ...delta_tables import NOON

PART = pa.struct([("id", INT), ("name", STRING)])
FACTS = pa.schema([("event_time", TIMESTAMP), ("n", INT), ("parts", pa.list_(PART))])
TOTALS = pa.schema([("event_time", TIMESTAMP), ("total", LONG)])
TOTAL = "SELECT max(event_time) AS event_time, sum(n) AS total FROM facts"
ALL = {"facts": Selection()}


def rows(*numbers: int | None, hours: int = 0) -> pa.Table:
    time = NOON + timedelta(hours=hours)
    return pa.Table.from_pylist([{"event_time": time, "n": n} for n in numbers], schema=FACTS)


def computed(rule: Rule, relation: Relation, selection: Selection | None = None) -> Any:
    with opened({"facts": relation}) as database:
        batches = database.compute(rule, {"facts": selection or Selection()})
        return pa.Table.from_batches(batches, rule.schema).to_pylist()


def test_files_of_spark_and_of_delta_rs_have_the_same_times(tmp_path: Path) -> None:
    spark, delta_rs = tmp_path / "spark.parquet", tmp_path / "delta_rs.parquet"
    pq.write_table(rows(1), spark, use_deprecated_int96_timestamps=True)
    pq.write_table(rows(2, hours=1), delta_rs)
    for paths in ([spark, delta_rs], [delta_rs, spark]):
        files = Files(tuple(map(str, paths)), FACTS)
        assert computed(Rule("r", TOTAL, TOTALS), files) == [
            {"event_time": NOON + timedelta(hours=1), "total": 3}
        ]


def test_a_column_that_files_lack_is_null(tmp_path: Path) -> None:
    old, new = tmp_path / "old.parquet", tmp_path / "new.parquet"
    pq.write_table(rows(1).drop_columns(["parts"]), old)
    narrow = pa.schema([("event_time", TIMESTAMP), ("parts", pa.list_(pa.struct([("id", INT)])))])
    pq.write_table(
        pa.Table.from_pylist([{"event_time": NOON, "parts": [{"id": 5}]}], schema=narrow), new
    )
    sql = "SELECT event_time, n, parts FROM facts"
    got = computed(Rule("r", sql, FACTS), Files((str(old), str(new)), FACTS))
    assert sorted(got, key=lambda row: row["n"] is None) == [
        {"event_time": NOON, "n": 1, "parts": None},
        {"event_time": NOON, "n": None, "parts": [{"id": 5, "name": None}]},
    ]


def test_files_that_are_kept_in_memory_are_read_once_and_others_again(tmp_path: Path) -> None:
    old, new = tmp_path / "old.parquet", tmp_path / "new.parquet"
    pq.write_table(rows(1, 2), old)
    pq.write_table(rows(5), new)
    view = {"large": "SELECT * FROM facts WHERE n > 1"}
    rule = Rule("r", "SELECT event_time, n AS total FROM large", TOTALS, views=view)

    def totals(path: Path, where: str = "true") -> list[int]:
        database.relations = {"facts": Files((str(path),), FACTS, in_memory=True)}
        batches = database.compute(rule, {"facts": Selection(where)})
        return pa.Table.from_batches(batches, rule.schema)["total"].to_pylist()

    with opened({}) as database:
        assert totals(old) == [2]
        old.unlink()
        assert totals(old) == [2]
        assert totals(old, "n < 2") == []
        assert totals(new) == [5]


def test_the_date_of_a_partition_comes_from_the_path(tmp_path: Path) -> None:
    folder = tmp_path / "it's [odd] *" / "event_date=2026-11-21"
    folder.mkdir(parents=True)
    pq.write_table(rows(1), folder / "a.parquet")
    schema = pa.schema([*FACTS, ("event_date", DATE)])
    rule = Rule("r", "SELECT event_date FROM facts", pa.schema([("event_date", DATE)]))
    files = Files((str(folder / "a.parquet"),), schema, is_dated=True)
    assert computed(rule, files) == [{"event_date": date(2026, 11, 21)}]


def test_files_outside_of_the_condition_on_their_day_are_not_opened(tmp_path: Path) -> None:
    days = [tmp_path / f"event_date=2026-11-{day}" / "a.parquet" for day in (20, 21)]
    for file in days:
        file.parent.mkdir()
    pq.write_table(rows(1), days[1])
    days[0].write_bytes(b"no Parquet file")
    schema = pa.schema([*FACTS, ("event_date", DATE)])
    relation = files_sql(Files(tuple(map(str, days)), schema, is_dated=True))
    with connect(threads=1) as connection:
        connection.execute(f"CREATE VIEW facts AS SELECT * FROM {relation}")
        read = "SELECT n FROM facts WHERE event_date = DATE '2026-11-21'"
        assert connection.execute(read).fetchall() == [(1,)]
        with pytest.raises(duckdb.Error, match="No magic bytes"):
            connection.execute("SELECT n FROM facts").fetchall()


def test_columns_of_a_partition_and_of_files_have_the_declared_types(tmp_path: Path) -> None:
    file = tmp_path / "x=1" / "event_date=2026-11-21" / "kind=12" / "a.parquet"
    file.parent.mkdir(parents=True)
    narrow = pa.schema([("n", pa.int16())])
    pq.write_table(pa.Table.from_pylist([{"n": 1}], schema=narrow), file)
    schema = pa.schema([("kind", STRING), ("event_date", DATE), ("n", LONG)])
    with connect(threads=1) as connection:
        relation = files_sql(Files((str(file),), schema, is_dated=True))
        got = connection.sql(f"SELECT kind, event_date, n FROM {relation}").to_arrow_table()
    assert got.schema == schema
    assert got.to_pylist() == [{"kind": "12", "event_date": date(2026, 11, 21), "n": 1}]


def test_a_relation_without_files_is_empty() -> None:
    rule = Rule("r", "SELECT event_time, n AS total FROM facts", TOTALS)
    assert computed(rule, Files((), FACTS)) == []


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(), 6),
        (Selection("n > 1"), 5),
        (Selection("event_time > TIMESTAMP '2026-11-21 12:30:00'"), 3),
        (Selection(last_of=("n",)), 6),
    ],
)
def test_a_rule_reads_what_is_selected(selection: Selection, expected: int) -> None:
    both = pa.concat_tables([rows(1, 2), rows(3, hours=1)])
    (row,) = computed(Rule("r", TOTAL, TOTALS), both, selection)
    assert row["total"] == expected


def test_row_groups_of_other_times_stay_closed(tmp_path: Path) -> None:
    file, within = tmp_path / "a.parquet", "event_time >= TIMESTAMP '2026-11-21 12:30:00'"
    early, late = rows(*range(1_000)), rows(*range(1_000), hours=1)
    pq.write_table(pa.concat_tables([early, late]), file, row_group_size=1_000)
    data, footer = bytearray(file.read_bytes()), pq.ParquetFile(file).metadata
    start = footer.row_group(0).column(1).dictionary_page_offset
    data[start : start + 16] = b"\xff" * 16
    file.write_bytes(data)
    rule = Rule("r", f"{TOTAL} WHERE n < 4 OR len(parts) > 1", TOTALS)
    files = Files((str(file),), FACTS)
    with pytest.raises(duckdb.Error):
        computed(rule, files, Selection(within))
    (row,) = computed(rule, files, Selection(within, in_files=within))
    assert row["total"] == 0 + 1 + 2 + 3


def test_the_last_row_of_each_key() -> None:
    both = pa.concat_tables([rows(1, 2), rows(1, hours=1)])
    rule = Rule("r", "SELECT event_time, n AS total FROM facts", TOTALS)
    got = computed(rule, both, Selection(last_of=("n",)))
    assert sorted((row["total"], row["event_time"].hour) for row in got) == [(1, 13), (2, 12)]


def test_a_sum_that_no_column_can_have_fails() -> None:
    largest = pa.Table.from_pylist(
        [{"event_time": NOON, "n": 2**63 - 1}] * 2,
        schema=pa.schema([*TOTALS]).set(1, pa.field("n", LONG)),
    )
    with pytest.raises(pa.ArrowInvalid, match="Integer value"):
        computed(Rule("r", TOTAL, TOTALS), largest)


def test_parameters_rows_views_and_macros_of_a_rule() -> None:
    rule = Rule(
        "r",
        "SELECT event_time, n * f + $more + twice(1) AS total FROM large JOIN factors ON true",
        TOTALS,
        macros="CREATE MACRO twice(x) AS 2 * x;",
        views={"large": "SELECT * FROM facts WHERE n > 1"},
        rows={"factors": pa.table({"f": [10]})},
        parameters={"more": 3, "unused": "x"},
    )
    assert [row["total"] for row in computed(rule, rows(1, 2))] == [25]


def test_a_walk_gets_sorted_rows_and_makes_a_relation() -> None:
    def running(batches: Batches) -> Batches:
        seen = 0
        for batch in batches:
            for n in batch.column("n").to_pylist():
                seen += n
                yield pa.record_batch({"n": pa.array([seen], LONG)})

    walk = Walk("sums", "SELECT n FROM facts ORDER BY n", pa.schema([("n", LONG)]), running)
    schema = pa.schema([("event_time", TIMESTAMP), ("total", LONG)])
    sql = "SELECT NULL::TIMESTAMP AS event_time, n AS total FROM sums"
    got = computed(Rule("r", sql, schema, walks=(walk,)), rows(3, 1, 2))
    assert [row["total"] for row in got] == [1, 3, 6]
    assert computed(Rule("r", sql, schema, walks=(walk,)), rows()) == []


def test_two_rules_in_one_database_do_not_see_each_others_relations() -> None:
    first = Rule(
        "a",
        "SELECT event_time, f AS total FROM facts, factors",
        TOTALS,
        rows={"factors": pa.table({"f": [1]})},
    )
    second = Rule("b", first.sql, TOTALS, rows={"factors": pa.table({"f": [2]})})
    with opened({"facts": rows(1, 2)}) as database:
        totals = [
            [
                row["total"]
                for batch in database.compute(rule, {"facts": Selection(where)})
                for row in batch.to_pylist()
            ]
            for rule, where in [(first, "n = 1"), (second, "true"), (first, "n = 2")]
        ]
    assert totals == [[1], [2, 2], [1]]


def test_what_exceeds_the_memory_goes_to_disk_and_gives_the_same_rows() -> None:
    many = pa.table(
        {
            "event_time": pa.array([NOON] * 1_000_000, TIMESTAMP),
            "n": pa.array(range(1_000_000), INT),
            "parts": pa.nulls(1_000_000, pa.list_(PART)),
        }
    )
    text = "repeat(n::VARCHAR, 20)"
    sql = f"SELECT max(event_time) AS event_time, count(DISTINCT {text}) AS total FROM facts"
    rule = Rule("r", sql, TOTALS)
    with opened({"facts": many}, memory_mb=128) as database:
        (batch,) = database.compute(rule, ALL)
    assert batch.to_pylist()[0]["total"] == 1_000_000


def test_extensions_are_never_fetched() -> None:
    with opened({}) as database, pytest.raises(duckdb.Error):
        database.connection.execute("SELECT * FROM read_xlsx('x.xlsx')")
