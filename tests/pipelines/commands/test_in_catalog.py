"""Each command that reads prints the same over a folder and over the catalog of the same tables."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.doctor import stored_tables
from quotaflow.pipelines.monitoring import prometheus
from quotaflow.pipelines.serve.site import QuotaflowSite
from quotaflow.pipelines.serve.tables import ServedTables
from quotaflow.pipelines.warehouse import gathered
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...command_line import Command, in_options
from ...own_process import printed_by, quotaflow
from ...schemas.views.filled_views import FILLED
from ...schemas.views.view_tables import make_tables_and_answers
from ..spark import remote_spark
from ..warehouse import catalogs
from ..warehouse.fake_sql_warehouse import WAREHOUSE, FakeSqlWarehouse, serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SCHEMA = "spark_catalog.same"
SPARK, SQL_WAREHOUSE = "spark", "sql_warehouse"
MOVE = "move.json"
NOW = datetime.now(UTC)
NAMES = {
    **dict.fromkeys(("NAME", "CLIENT", "dave"), "alice"),
    **{"GROUP": "orders", "TOPIC": "unused", "REASSIGNMENT.json": MOVE, "shift.html": "-"},
}
"""What stands for the names of a page."""
PLACES = re.compile("|".join(map(re.escape, NAMES)))
BY_THE_CLOCK = re.compile(r"quotaflow_\w*(silent|behind|free)\w*\b")
RECEIVER = (
    'alerts.receivers=[{"name": "hook", "url": "env:HOOK"}]',
    "alerts.max_age_s=86400000",
)
MADE_BY_CLIENT = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from tests.pipelines.warehouse import catalogs
next(catalogs.of_folder.__wrapped__(
    SparkSession.builder.getOrCreate(), Path(sys.argv[1]), sys.argv[2]
))
"""
"""Makes the schema in the catalog of a server, which keeps it."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables in which every view has rows."""
    made = tmp_path_factory.mktemp("same")
    make_tables_and_answers(Warehouse(config.WarehouseSection(path=str(made))), FILLED)
    (made / "_checkpoints").mkdir(exist_ok=True)
    move = {"topic": "unused", "partition": 0, "replicas": [2, 1]}
    (made / MOVE).write_text(json.dumps({"version": 1, "partitions": [move]}))
    return made


@pytest.fixture(scope="module")
def schema(spark: "SparkSession", folder: Path) -> Iterator[str]:
    """A schema of a catalog that has those tables."""
    with catalogs.of_folder(spark, folder, SCHEMA):
        yield SCHEMA


@pytest.fixture(scope="module")
def fake(spark: "SparkSession") -> Iterator[FakeSqlWarehouse]:
    made = FakeSqlWarehouse(spark, polls=0)
    with serving(made) as login, pytest.MonkeyPatch.context() as patch:
        for name, value in login.items():
            patch.setenv(name, value)
        yield made


ENOUGH = "warehouse.query_timeout_s=3600"
"""No statement ends for its time, on a slow machine either: each table would be asked for alone."""


def options(schema: str, folder: Path, engine: str) -> list[str]:
    """The options of a command over the catalog."""
    place = [f"warehouse.catalog_schema={schema}", f"warehouse.checkpoints={folder}/_checkpoints"]
    place += [f"warehouse.sql_warehouse={WAREHOUSE}"] * (engine != SPARK)
    return in_options(ENOUGH, *place)


def alike(text: str, schema: str, folder: Path) -> str:
    """Without the place of the tables, the clock, and microseconds: a log of files has none."""
    text = text.replace(f", from {schema}.", ".").replace(schema, str(folder))
    text = re.sub(r'data-tag="[^"]*"|\d\d:\d\d:\d\d (UTC|to)', "", text)
    return re.sub(r'(\d\d:\d\d:\d\d\.\d{3})\d{3}Z","size_bytes"', r'\1000Z","size_bytes"', text)


SINCE = ("--since", "2026-11-20T00:00:00Z")
COMMANDS = [
    ("describe", "quota_usage", "--json"),
    ("describe", "throttled_clients", "--json"),
    ("show", "quota_usage", "--json"),
    ("show", "plans", "--where", "number = 0"),
    ("show", "group_lag"),
    ("sql", "SELECT api, count(*) AS n FROM requests GROUP BY api ORDER BY api", "--json"),
    ("sql", "WITH own AS (SELECT * FROM throttled_clients) SELECT count(*) AS n FROM own"),
    ("what-if", "--producer-ids-rate", "0.001"),
    ("what-if", "quota", "--user", "alice", "--producer-byte-rate", "1000", *SINCE),
]
SLOW = [
    ("tables", "--all", "--json"),
    ("why", "alice"),
    ("why", "alice", "--all"),
    ("report", "--out", "-"),
    ("throttle-advice", MOVE, "--json"),
    ("notify", "--dry-run", "--json", *in_options(*RECEIVER)),
]
"""They read many tables, and Spark takes a second for some."""


STATEMENTS = {
    ("why", "alice"): 5,
    ("why",): 5,
    ("report", "--out", "-"): 14,
    ("status",): 4,
    ("show", "throttled_clients"): 3,
    ("show", "quota_usage"): 4,
    ("sql", "SELECT count(*) AS n FROM throttled_clients, group_lag"): 3,
    ("what-if", "--producer-ids-rate", "0.001"): 3,
    ("what-if", "quota", "--user", "alice", "--producer-byte-rate", "1000", *SINCE): 5,
    ("notify", "--dry-run", "--json", *in_options(*RECEIVER)): 3,
    ("throttle-advice", MOVE, "--json"): 5,
}
"""How many statements a command sends to a SQL warehouse at most: threads may ask for more at once.
Two of them ask for its time zone and its tables. docs/databricks.md has their range."""


@pytest.fixture
def few_statements(fake: FakeSqlWarehouse, request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test sends to the SQL warehouse for its words is what they may need."""
    before, given = len(fake.statements), request.node.callspec.params
    yield
    if given.get("engine") != SPARK and given["words"] in STATEMENTS:
        assert 3 <= len(fake.statements) - before <= STATEMENTS[given["words"]]


def with_file(words: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """With the place of the file that a command reads."""
    return tuple(word.replace(MOVE, str(folder / MOVE)) for word in words)


@pytest.mark.usefixtures("few_statements")
@pytest.mark.parametrize(
    ("words", "engine"),
    [
        *((words, engine) for words in COMMANDS for engine in (SPARK, SQL_WAREHOUSE)),
        # In Spark: behind Spark Connect, below.
        *(pytest.param(words, SQL_WAREHOUSE, marks=pytest.mark.faults) for words in SLOW),
    ],
    ids=lambda given: (
        given if isinstance(given, str) else " ".join(given[:2]).partition(" (")[0][:24]
    ),
)
def test_a_command_prints_the_same(
    command: Command, folder: Path, schema: str, engine: str, words: tuple[str, ...]
) -> None:
    words = with_file(words, folder)
    expected = command(*words, *in_options(f"warehouse.path={folder}")).out
    printed = command(*words, *options(schema, folder, engine)).out
    assert alike(printed, schema, folder) == alike(expected, schema, folder)
    assert expected.strip()


@pytest.mark.faults
@pytest.mark.usefixtures("few_statements")
@pytest.mark.parametrize("words", sorted(STATEMENTS.keys() - {*COMMANDS, *SLOW}), ids=" ".join)
def test_a_command_works_over_a_sql_warehouse(
    command: Command, folder: Path, schema: str, words: tuple[str, ...]
) -> None:
    command(*words, *options(schema, folder, SQL_WAREHOUSE), code=int(words[0] == "status"))


@pytest.mark.faults
@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize("engine", [SPARK, SQL_WAREHOUSE])
def test_doctor_says_the_same_of_tables(folder: Path, schema: str, engine: str) -> None:
    places = ([f"warehouse.path={folder}"], options(schema, folder, engine)[1::2])
    of_folder, of_catalog = (
        {each.subject: each for each in stored_tables.findings(config.load(overrides=place), NOW)}
        for place in places
    )
    assert of_folder.keys() - of_catalog.keys() == {"warehouse", "lock"}
    # It counts no rows there.
    assert of_catalog.pop("tables").observed.endswith(f"tables in {schema}")
    # It is in another folder.
    del of_catalog["stop file"]
    assert of_catalog == {subject: of_folder[subject] for subject in of_catalog}
    assert of_catalog["columns"].state == "ok"


@pytest.mark.faults
@pytest.mark.parametrize("words", [("why",), ("why", "alice", "--all")], ids=len)
def test_answers_mean_the_same_in_spark(
    command: Command,
    folder: Path,
    schema: str,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
) -> None:
    # Then nothing is answered in this process.
    monkeypatch.setattr(gathered, "MAX_VALUES", 0)
    printed = command(*words, *options(schema, folder, SPARK)).out
    expected = command(*words, *in_options(f"warehouse.path={folder}")).out
    assert alike(printed, schema, folder) == alike(expected, schema, folder)


def commands_of(page: str) -> list[tuple[str, ...]]:
    """The reading commands of a page, about names that the tables have, and its queries."""
    text = (Path(__file__).parents[3] / "docs" / page).read_text(encoding="utf-8")
    inline = re.findall(r"`quotaflow ([^`]+)`", text)
    blocks = re.findall(r"^quotaflow ((?:(?! +#).)+)", text, re.M)
    lines = [
        shlex.split(PLACES.sub(lambda place: NAMES[place[0]], line)) for line in inline + blocks
    ]
    queries = [["sql", query] for query in re.findall(r"```sql\n(.*?)```", text, re.S)]
    lines = [line for line in lines if "..." not in line]
    read = {"show", "why", "report", "throttle-advice", "sql"}
    return list(
        dict.fromkeys(tuple(each) for each in lines + queries if each[0] in read and each[1:])
    )


@pytest.mark.faults
@pytest.mark.timeout(1_800)
def test_a_night_and_ten_questions_are_answered(
    command: Command, folder: Path, schema: str
) -> None:
    night = commands_of("night.md")
    questions = [each for each in commands_of("questions.md") if each not in night][:10]
    assert len(night) >= 20
    assert len(questions) == 10
    for words in (with_file(words, folder) for words in (*night, *questions)):
        expected, printed = (
            command(*words, *place).out
            for place in (in_options(f"warehouse.path={folder}"), options(schema, folder, SPARK))
        )
        # Rows of one time come in any order.
        shown, of_folder = (
            sorted(alike(text, schema, folder).splitlines()) for text in (printed, expected)
        )
        assert shown == of_folder, words


@pytest.mark.faults
@pytest.mark.timeout(1_800)
def test_commands_print_the_same_behind_spark_connect(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    expected = {}
    for words in (with_file(words, folder) for words in (*COMMANDS, *SLOW)):
        expected[words] = command(*words, *in_options(f"warehouse.path={folder}")).out
    settings = {"spark.sql.warehouse.dir": str(tmp_path)}
    with remote_spark.connect_server(tmp_path, settings) as client:
        environment = os.environ | client
        printed_by(MADE_BY_CLIENT, str(folder), SCHEMA, env=environment)
        for words, text in expected.items():
            line = quotaflow(*words, *options(SCHEMA, folder, SPARK))
            done = subprocess.run(
                line, capture_output=True, text=True, env=environment, check=False
            )
            assert done.returncode == 0, (words, done.stderr)
            assert alike(done.stdout, SCHEMA, folder) == alike(text, SCHEMA, folder), words


@pytest.mark.faults
@pytest.mark.usefixtures("fake")
def test_status_says_the_same_but_for_files(command: Command, folder: Path, schema: str) -> None:
    roomy = in_options("health.min_free_share=0.0")
    expected, printed = (
        command("status", "--json", *place, *roomy, code=1).rows[0]
        for place in (in_options(f"warehouse.path={folder}"), options(schema, folder, SPARK))
    )
    for row in (expected, printed):
        row.pop("at")
        assert row.pop("free_share")["checkpoints"] > 0
        # Both go by the clock.
        for job in row["jobs"]:
            job.pop("silent_s")
            job.pop("behind_s")
    assert printed == expected
    assert printed["jobs"]


@pytest.mark.faults
@pytest.mark.parametrize("engine", [SPARK, SQL_WAREHOUSE])
@pytest.mark.usefixtures("fake")
def test_metrics_of_a_file_are_the_same(
    folder: Path, schema: str, tmp_path: Path, engine: str
) -> None:
    def samples(*pairs: str) -> list[str]:
        with prometheus.exposed(config.load(overrides=pairs), None, tmp_path / "m.prom"):
            pass
        lines = (tmp_path / "m.prom").read_text().splitlines()
        return [line for line in lines if not BY_THE_CLOCK.match(line)]

    expected = samples(f"warehouse.path={folder}")
    assert samples(*options(schema, folder, engine)[1::2]) == expected
    assert "quotaflow_up 1.0" in expected


@pytest.mark.faults
@pytest.mark.usefixtures("fake")
def test_pages_say_the_same(folder: Path, schema: str) -> None:
    checkpoints = f"{folder}/_checkpoints"
    places = (
        config.WarehouseSection(path=str(folder)),
        config.WarehouseSection(
            catalog_schema=schema, checkpoints=checkpoints, sql_warehouse=WAREHOUSE
        ),
    )
    now = datetime.now(UTC)
    sites = [
        QuotaflowSite(
            ServedTables(config.Conf(warehouse=place), None, timedelta(days=1), lambda: now), 30
        )
        for place in places
    ]
    for path in ("/", "/client?name=alice", "/group?name=g", "/find?q=ali"):
        expected, printed = (site.answer(path) for site in sites)
        assert printed.status == expected.status, path
        shown = alike(printed.body.decode(), schema, folder)
        assert shown == alike(expected.body.decode(), schema, folder), path


def test_a_catalog_without_tables_names_what_fills_them(command: Command, tmp_path: Path) -> None:
    places = options("spark_catalog.default", tmp_path, SPARK)
    assert "table requests was never made in spark_catalog.default" in command.error(
        "show", "requests", *places, code=1
    )


@pytest.mark.usefixtures("spark")
def test_a_catalog_that_is_not_there_is_one_line_in_every_command(
    command: Command, folder: Path
) -> None:
    places = options("main.quotaflow", folder, SPARK)
    reading = [words for words in (*COMMANDS, *SLOW) if words[:2] != ("describe", "quota_usage")]
    for words in (*reading, ("plan",)):
        printed = command(*with_file(words, folder), *places, code=2)
        assert printed.err.splitlines()[-1].startswith("error: no catalog main "), words
        assert "\tat " not in printed.err
        assert printed.err.count("\n") <= 2, words


@pytest.mark.usefixtures("schema")
def test_a_wrong_query_is_one_line(command: Command, folder: Path, schema: str) -> None:
    places = options(schema, folder, SPARK)
    assert "nothing" in command.error("sql", "SELECT nothing FROM requests", *places)
    assert "no table reqests" in command.error("sql", "SELECT * FROM reqests", *places)
    assert "only queries" in command.error("sql", "DROP TABLE requests", *places)
