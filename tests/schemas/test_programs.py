"""Client ids of one program are one pattern, and those of two programs stay two."""

import random
import string
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from quotaflow.pipelines.warehouse.sql_dialects import in_duckdb
from quotaflow.schemas import programs
from quotaflow.udfs.engine.database import Database, opened

from ..cases import cases

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POD = "bcdfghjklmnpqrstvwxz2456789"
HEX = "0123456789abcdef"
BASE36 = string.digits + string.ascii_lowercase
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
N = 300

Make = Callable[[random.Random], str]


def drawn(alphabet: str, length: int) -> Make:
    return lambda draws: "".join(draws.choices(alphabet, k=length))


def number(least: int, most: int) -> Make:
    return lambda draws: str(draws.randint(least, most))


def a_uuid(draws: random.Random) -> str:
    return str(uuid.UUID(int=draws.getrandbits(128), version=4))


def one(*choices: str) -> Make:
    return lambda draws: draws.choice(choices)


def seconds(draws: random.Random) -> int:
    return draws.randint(1_700_000_000, 1_900_000_000)


def time(form: str) -> Make:
    return lambda draws: datetime.fromtimestamp(seconds(draws), UTC).strftime(form)


def ip(separator: str) -> Make:
    return lambda draws: separator.join(str(draws.randint(0, 255)) for _ in range(4))


def base36(length: int) -> Make:
    """With a digit before a letter: without one a hash looks like a word."""

    def made(draws: random.Random) -> str:
        left = "".join(draws.choices(BASE36, k=length - 4))
        return (
            f"{left[:2]}{draws.randint(0, 9)}k{left[2:]}{draws.choice('xz')}{draws.randint(0, 9)}"
        )

    return made


def ksuid(draws: random.Random) -> str:
    return "2" + "".join(draws.choices(string.ascii_letters + string.digits, k=24)) + "4b"


KINDS: dict[str, tuple[str, tuple[Make, ...]]] = {
    # name: text with {} for what is drawn, how to draw it
    "uuid": ("{}", (a_uuid,)),
    "uuid after a name": ("orders-{}", (a_uuid,)),
    "uuid before a name": ("{}-orders", (a_uuid,)),
    "uuid in a name": ("orders.{}.eu", (a_uuid,)),
    "uuid after an underscore": ("orders_{}", (a_uuid,)),
    "uuid without a separator": ("orders{}", (a_uuid,)),
    "uuid in capitals": ("orders-{}", (lambda draws: a_uuid(draws).upper(),)),
    "uuid in braces": ("orders-{}", (lambda draws: "{" + a_uuid(draws) + "}",)),
    "uuid without dashes": ("orders-{}", (lambda draws: a_uuid(draws).replace("-", ""),)),
    "uuid without dashes, after an underscore": (
        "orders_{}_1",
        (lambda draws: a_uuid(draws).replace("-", ""),),
    ),
    "uuid with underscores": ("orders_{}", (lambda draws: a_uuid(draws).replace("-", "_"),)),
    "two uuids": ("{}:{}", (a_uuid, a_uuid)),
    "uuid and a number": ("orders-{}-{}", (a_uuid, number(0, 99))),
    "pods of a Deployment": ("orders-{}-{}", (drawn("456789bcdf", 9), drawn(POD, 5))),
    "pods of any ReplicaSet": ("orders-{}-{}", (drawn(POD, 8), drawn(POD, 5))),
    "pods with a short hash": ("orders-{}-{}", (drawn(POD, 6), drawn(POD, 5))),
    "pods with a long hash": ("orders-{}-{}", (drawn("456789bcdf", 10), drawn(POD, 5))),
    "pods and a thread": ("orders-{}-{}-{}", (drawn(POD, 9), drawn(POD, 5), number(0, 20))),
    "pods before the client's role": ("orders-{}-{}-producer", (drawn(POD, 9), drawn(POD, 5))),
    "pods as Java names a producer": (
        "producer-orders-{}-{}-{}",
        (drawn(POD, 9), drawn(POD, 5), number(1, 9)),
    ),
    "pods of a StatefulSet": ("orders-db-{}", (number(0, 120),)),
    "pods of a StatefulSet with a domain": ("orders-db-{}.orders.svc", (number(0, 120),)),
    "pods of a DaemonSet": ("fluentd-{}", (drawn(POD, 5),)),
    "pods of a Job": ("export-{}", (drawn(POD, 5),)),
    "pods of an indexed Job": ("export-{}-{}", (number(0, 99), drawn(POD, 5))),
    "pods of a CronJob": ("report-{}-{}", (number(28_000_000, 31_000_000), drawn(POD, 5))),
    "pods of an old CronJob": (
        "report-{}-{}",
        (number(1_700_000_000, 1_800_000_000), drawn(POD, 5)),
    ),
    "Streams' clients": (
        "billing-{}-StreamThread-{}-{}",
        (a_uuid, number(1, 16), one("consumer", "restore-consumer", "producer")),
    ),
    "Streams' producers of tasks": (
        "billing-{}-StreamThread-{}-{}_{}-producer",
        (a_uuid, number(1, 16), number(0, 9), number(0, 63)),
    ),
    "Streams' global threads": (
        "billing-{}-GlobalStreamThread{}",
        (a_uuid, one("", "-global-consumer", "-consumer")),
    ),
    "Streams' admin clients": ("billing-{}-admin", (a_uuid,)),
    "Streams with a client.id": (
        "billing-host{}-StreamThread-{}-{}",
        (number(1, 9), number(1, 4), one("consumer", "restore-consumer", "producer")),
    ),
    "Streams' transactional ids": ("billing-{}-{}", (a_uuid, number(1, 16))),
    "Streams' transactional ids of tasks": ("billing-{}_{}", (number(0, 9), number(0, 63))),
    "Connect's clients of a connector": (
        "connector-{}-jdbc.sink-{}",
        (one("consumer", "producer", "dlq-producer", "adminclient"), number(0, 31)),
    ),
    "Connect's workers": ("connect-{}", (number(1, 9),)),
    "Connect's workers by address": ("connect-{}:8083", (ip("."),)),
    "Spark's sources": (
        "spark-kafka-source-{}-{}-{}",
        (a_uuid, number(-(2**31), 2**31 - 1), one("driver-0", "executor")),
    ),
    "Spark's sources as Java names a consumer": (
        "consumer-spark-kafka-source-{}-{}-{}-{}",
        (a_uuid, number(-(2**31), 2**31 - 1), one("driver-0", "executor"), number(1, 40)),
    ),
    "Spark's batches": ("spark-kafka-relation-{}-{}", (a_uuid, one("driver-0", "executor"))),
    "Flink's transactional ids": ("orders-sink-{}-{}", (number(0, 31), number(1, 99_999))),
    "Flink's transactional ids by operator": (
        "Source: orders -> Sink-{}-{}",
        (drawn(HEX, 32), number(0, 999)),
    ),
    "hex of 6": ("orders-{}", (lambda draws: "7" + drawn(HEX, 4)(draws) + "c",)),
    "hex of 7, a short commit": ("orders-{}", (lambda draws: drawn(HEX, 6)(draws) + "3",)),
    "hex of 8": ("orders-{}", (drawn(HEX, 8),)),
    "hex of 8, after an underscore": ("orders_{}", (drawn(HEX, 8),)),
    "hex of 40, a commit": ("orders-{}", (drawn(HEX, 40),)),
    "base36 of 8": ("orders-{}", (base36(8),)),
    "base36 of 11, as Math.random gives": ("orders-{}", (base36(11),)),
    "base36 of 25, a task of Swarm": ("orders.{}.{}", (number(1, 9), base36(25))),
    "ULID": ("orders-{}", (lambda draws: "01" + drawn(CROCKFORD, 24)(draws),)),
    "ULID in lower case": (
        "orders-{}",
        (lambda draws: "01" + drawn(CROCKFORD, 24)(draws).lower(),),
    ),
    "KSUID": ("orders-{}", (ksuid,)),
    "short ids of containers": ("orders-{}", (drawn(HEX, 12),)),
    "ids of containers": ("{}", (drawn(HEX, 64),)),
    "AWS instances": ("orders-i-{}", (lambda draws: "0" + drawn(HEX, 16)(draws),)),
    "AWS instances of old": ("i-{}", (drawn(HEX, 8),)),
    "AWS host names": ("ip-{}.eu-west-1.compute.internal", (ip("-"),)),
    "GKE nodes": ("gke-main-pool-{}-{}", (drawn(HEX, 8), drawn(BASE36, 4))),
    "AKS nodes": ("aks-np-{}-vmss00000{}", (number(10_000_000, 99_999_999), drawn(BASE36, 1))),
    "git describe": ("orders-v1.2.{}-{}-g{}", (number(0, 9), number(1, 99), drawn(HEX, 7))),
    "addresses": ("orders-{}", (ip("."),)),
    "addresses and ports": ("orders@{}:{}", (ip("."), number(1024, 65_535))),
    "addresses with underscores": ("orders_{}", (ip("_"),)),
    "IPv6 addresses": (
        "orders-{}",
        (lambda draws: "fd00:" + ":".join(f"{draws.getrandbits(16):x}" for _ in range(7)),),
    ),
    "short IPv6 addresses": (
        "orders-{}",
        (lambda draws: f"2001:db8::{draws.getrandbits(16):x}",),
    ),
    "MAC addresses": (
        "sensor-{}",
        (lambda draws: ":".join(f"{draws.getrandbits(8):02x}" for _ in range(6)),),
    ),
    "seconds": ("orders-{}", (number(1_700_000_000, 1_900_000_000),)),
    "milliseconds": ("orders-{}", (number(1_700_000_000_000, 1_900_000_000_000),)),
    "ISO times": ("orders-{}", (time("%Y-%m-%dT%H:%M:%SZ"),)),
    "ISO times with fractions": ("orders-{}", (time("%Y-%m-%dT%H:%M:%S.%fZ"),)),
    "ISO times without separators": ("orders-{}", (time("%Y%m%dT%H%M%SZ"),)),
    "dates and times": ("orders_{}", (time("%Y-%m-%d_%H-%M-%S"),)),
    "dates": ("orders-{}", (time("%Y%m%d"),)),
    "dates with a month's name": ("orders-{}", (time("%d-%b-%Y"),)),
    "dates with a month's name and no separator": ("orders-{}", (time("%d%b%Y"),)),
    "process and host": ("{}@orders", (number(1, 99_999),)),
    "counters": ("producer-{}", (number(0, 99_999),)),
    "counters without a separator": ("worker{}", (number(0, 999),)),
    "counters in brackets": ("orders[{}]", (number(0, 99),)),
    "counters before the name": ("{}-orders", (number(0, 99),)),
    "versions": ("orders-v{}.{}.{}", (number(1, 9), number(0, 30), number(0, 9))),
    "releases and builds": ("orders-{}.{}-b{}", (number(1, 9), number(0, 30), number(1, 999))),
}


PROGRAMS = ("orders", "billing", "fluentd", "export", "report")


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with opened({}) as database:
        yield database


EVERY_SQL = programs.expanded("SELECT name, program_of(name) AS pattern FROM names")


def patterns(database: Database, names: Sequence[str | None]) -> list[Any]:
    sql = "SELECT list_transform($names, lambda name: program_of(name)) AS patterns"
    ((made,),) = database.connection.execute(sql, {"names": list(names)}).fetchall()
    assert len(made) == len(names)
    return list(made)


def drawn_names(kind: str, seed: int) -> list[str]:
    text, parts = KINDS[kind]
    draws = random.Random(f"{kind} {seed}")
    return [text.format(*(part(draws) for part in parts)) for _ in range(N)]


@pytest.mark.parametrize("kind", KINDS)
def test_names_of_a_kind_are_one_program(database: Database, kind: str) -> None:
    names = drawn_names(kind, 0)
    by_pattern = dict(zip(patterns(database, names), names, strict=True))
    assert len(by_pattern) == 1, list(by_pattern.items())[:4]


def test_two_programs_of_one_kind_stay_two(database: Database) -> None:
    """Where a name of the program stands beside what varies."""
    for kind, (text, parts) in KINDS.items():
        words = [
            word for word in ("orders", "billing", "fluentd", "export", "report") if word in text
        ]
        if not words:
            continue
        draws = random.Random(kind)
        names = [text.format(*(part(draws) for part in parts)) for _ in range(2)]
        names[1] = names[1].replace(words[0], "invoices")
        first, second = patterns(database, names)
        assert first != second, kind


@cases(
    "names",
    ("words of hexadecimal letters", ["svc-facade", "svc-decade", "svc-cafe", "svc-added"]),
    ("words of eight and more of them", ["svc-deadbeef", "svc-cafebabe", "svc-feedface"]),
    ("with a number behind", ["svc-decade2", "svc-facade2", "svc-cafe24"]),
    ("words that begin so", ["orders-feedback", "orders-facebook", "orders-decaffeinated"]),
    ("words without vowels", ["proxy-https", "proxy-mqtts", "proxy-grpcs", "proxy-smtps"]),
    ("names of databases", ["cdc-mssql", "cdc-pgsql", "cdc-plsql", "cdc-mysql", "cdc-nosql"]),
    ("protocols with a number", ["edge-http2", "edge-grpc2", "edge-mqtt5", "edge-html5"]),
    ("words and figures", ["to-s3", "to-ec2", "to-k8s", "to-oauth2", "to-x86", "to-neo4j"]),
    ("words around a figure", ["kafka2snowflake", "mysql2kafka", "kafka2s3sync", "log4jappender"]),
    ("figures within long words", ["oauth2proxy", "k8soperator", "s3connector", "e2etests"]),
    ("API versions of two things", ["v1beta1-orders", "v1beta1-billing"]),
    ("roles", ["orders-producer", "orders-consumer", "orders-admin"]),
    ("long words", ["inventory-replenishment", "inventory-replacement"]),
    ("environments", ["orders-prd", "orders-stg", "orders-tst", "orders-dev"]),
    ("places of a region", ["orders-us-east-1a", "orders-us-east-1b"]),
    ("connectors", ["connector-consumer-orders-0", "connector-consumer-billing-0"]),
    ("consumers' groups", ["consumer-orders-1", "consumer-billing-1"]),
    ("the case of a name", ["Orders", "orders"]),
    ("separators", ["a_b", "a-b", "a.b", "a|b"]),
    ("names in other scripts", ["заказы", "счета", "注文", "請求"]),
    ("nothing", ["", "x", "-", "_", "*-x"]),
)
def test_names_of_two_programs_stay_two(database: Database, names: list[str]) -> None:
    seen = patterns(database, names)
    assert len(set(seen)) == len(names), list(zip(names, seen, strict=True))


@cases(
    ("name", "pattern"),
    ("counted", "producer-17", "producer-*"),
    ("no number", "orders-service", "orders-service"),
    ("underscores stay", "orders_service_3", "orders_service_*"),
    ("a word that looks like a hash", "svc-decade2", "svc-decade*"),
    ("a pod", "orders-6f4b7c9d88-8xmbj", "orders-*"),
    ("a pod of a Job", "export-0-x7k2p", "export-*-*"),
    ("Streams", f"billing-{uuid.UUID(int=7)}-StreamThread-1-consumer", "billing-*-*"),
    ("Streams with a client.id", "billing-StreamThread-1-consumer", "billing-*"),
    ("Connect", "connector-consumer-orders-0", "connector-*-orders-*"),
    ("versions are numbers like others", "orders-v2", "orders-v*"),
    ("an address", "orders-10.0.0.7:9092", "orders-*.*.*.*:*"),
    ("what is long is cut", "x" * 300, "x" * 200),
    ("a pseudonym", "hmac.k1.0123456789abcdef01234567", "hmac.k1.0123456789abcdef01234567"),
    ("marks of ours", "a¦b_1§", "a¦b_1§"),
    ("no client id", None, None),
)
def test_a_pattern(database: Database, name: str | None, pattern: str | None) -> None:
    assert patterns(database, [name]) == [pattern]


def test_a_pattern_is_the_pattern_of_itself(database: Database) -> None:
    once = [patterns(database, drawn_names(kind, 1)[:1])[0] for kind in KINDS]
    assert patterns(database, once) == once


def some_of_each() -> list[str]:
    return [name for kind in KINDS for name in drawn_names(kind, 2)[:20]] + [
        *("orders-decade2", "proxy-https", "kafka2snowflake", "x" * 300, "a¦b", "hmac.k1.0a", ""),
        # Nobody chooses a name for which an expression takes for ever.
        *(f"7{'a' * 190}", f"{'a1' * 95}~", f"{'ab' * 95}_", "b" * 190 + "-", "1" * 190 + "z~"),
    ]


def test_a_view_says_what_a_rule_says(database: Database) -> None:
    names = some_of_each()
    database.connection.register("names", pa.table({"name": names}))
    seen = dict(database.connection.sql(in_duckdb(EVERY_SQL)).fetchall())
    database.connection.unregister("names")
    assert seen == dict(zip(names, patterns(database, names), strict=True))


def test_names_at_hand_have_the_same(database: Database) -> None:
    names = some_of_each()
    assert list(map(programs.program_of, names)) == patterns(database, names)


@pytest.mark.spark
def test_spark_says_the_same(database: Database, spark: "SparkSession") -> None:
    names = some_of_each()
    spark.createDataFrame([(name,) for name in names], "name string").createOrReplaceTempView(
        "names"
    )
    seen = {row["name"]: row["pattern"] for row in spark.sql(EVERY_SQL).collect()}
    assert seen == dict(zip(names, patterns(database, names), strict=True))
