"""docs/kips.md claims only what exists, and what a test shows."""

import re

import pytest

from quotaflow.pipelines.commands import index
from quotaflow.pipelines.reference import conf_keys
from quotaflow.pipelines.warehouse import views
from quotaflow.schemas.tables.catalog import TABLES

from ..features import features
from .pages import ROOT, functions_of, text_of

KIPS = text_of("docs/kips.md")
COLUMNS = {
    **{name: {column.name for column in table.columns} for name, table in TABLES.items()},
    **{name: {column.name for column in view.columns} for name, view in views.load().items()},
}
STATES = {"works", "differs", "cannot"}
OF_KAFKA = {
    "*",
    "ClientTelemetry",
    "client.terminating",
    "kafka-configs --entity-type client-metrics",
    "partition-replica",
    "partition:broker",
    "producer_ids_rate",
}
"""Names of Kafka and of the KIPs that the page has in backticks."""
STATEMENT = re.compile(r"^\| ([^|]+) \| (\w+) \| ([^|]+) \| ([^|]+) \|$", re.M)


def sections() -> dict[str, list[tuple[str, ...]]]:
    """The statements of each KIP."""
    parts = re.split(r"^## (KIP-\d+)\b.*$", KIPS, flags=re.M)[1:]
    return {
        kip: STATEMENT.findall(text.partition("\n## ")[0])
        for kip, text in zip(parts[::2], parts[1::2], strict=True)
    }


def is_there(quoted: str) -> bool:
    """Whether a text in backticks names something of ours that exists."""
    if quoted.startswith("quotaflow "):
        return quoted.split()[1] in index.COMMANDS
    if quoted.startswith("python -m "):
        return (ROOT / f"{quoted.split()[2].replace('.', '/')}.py").exists()
    if quoted.startswith("tests/"):
        file, _, name = quoted.partition("::")
        return name in functions_of(file)
    if "/" in quoted:
        return (ROOT / quoted).exists()
    table, _, column = quoted.partition(".")
    if table in COLUMNS and (not column or column in COLUMNS[table]):
        return True
    return quoted in {key.path for key in conf_keys.each_key()}


def test_what_the_page_names_exists() -> None:
    quoted = set(re.findall(r"`([^`\n]+)`", KIPS)) - OF_KAFKA
    assert {each for each in quoted if not is_there(each)} == set()


def test_every_name_of_kafka_is_on_the_page() -> None:
    assert {name for name in OF_KAFKA if f"`{name}`" not in KIPS} == set()


@pytest.mark.parametrize(("kip", "least"), sorted({
    "KIP-714": 25, "KIP-936": 14, "KIP-73": 15, "KIP-392": 13, "KIP-74": 8
}.items()))  # fmt: skip
def test_every_statement_of_a_kip_works_or_says_why_not(kip: str, least: int) -> None:
    statements = sections()[kip]
    assert len(statements) >= least
    assert {state for _, state, _, _ in statements} <= STATES
    unshown = [
        statement for statement, _, _, test in statements if not re.fullmatch(r"`tests/.*`", test)
    ]
    assert unshown == []
    # A row in which something is not as the KIP says has a sentence, not a name alone.
    unexplained = [
        statement
        for statement, state, how, _ in statements
        if state != "works" and len(re.sub(r"`[^`]*`|\[[^]]*\]\([^)]*\)|\W", "", how)) < 10
    ]
    assert unexplained == []


def test_no_row_of_a_table_is_overlooked() -> None:
    text = KIPS[KIPS.index("## KIP-714") : KIPS.index("## Kafka before")]
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    heads = [line for line in rows if line.startswith(("| the KIP says", "| ---"))]
    assert sum(map(len, sections().values())) == len(rows) - len(heads)


def test_each_feature_is_shown_once_on_a_real_cluster() -> None:
    marked = list(features())
    assert len(marked) > 40
    assert len({each.words for each in marked}) == len(marked)
    assert {each.file.rpartition("/")[0] for each in marked} == {"tests/live"}
