"""What a name means to `quotaflow why`: each kind of name, in the forms that people write."""

from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines import config
from quotaflow.pipelines.areas.subject import Subject, UnknownNameError, resolve
from quotaflow.pipelines.config.cluster import is_like
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...rows import Row, at, moved, request, used
from ...schemas.views.view_tables import make_tables

DAVE: Row = {"principal": "User:dave", "client_id": "exports"}
OTHER: Row = {"principal": "User:other", "client_id": "other"}
ID, TOPIC_ID = "vl7CCx68Qw29SsxmLSK4Xg", "dG9waWM"
ARN = "arn:aws:sts::1:assumed-role/etl/i-0"
INSTANCE = {"cluster_id": "c1", "client_instance_id": ID, "last_seen": at(5), **DAVE}
TOPIC = {"cluster_id": "c1", "topic_id": TOPIC_ID, "topic": "orders.eu", "event_time": at(0)}
CONTENT: dict[str, list[Row]] = {
    "quota_usage": [
        used(0, "producer_byte_rate", 9.0, **DAVE),
        used(0, "producer_byte_rate", 9.0, **OTHER | {"principal": f"User:{ARN}"}),
        used(0, "producer_byte_rate", 9.0, **OTHER | {"cluster_id": "c2", "client_id": "far"}),
        used(-2 * 86_400, "producer_byte_rate", 9.0, **OTHER | {"client_id": "left"}),
        used(-2 * 86_400, "producer_byte_rate", 9.0, **OTHER | {"client_id": "tx-1"}),
    ],
    "requests": [
        request(1, "FETCH", **DAVE, group_id="etl.a:b,c=d", transactional_id="tx-1"),
        request(2, "FETCH", **DAVE, client_address="10.0.0.9"),
        request(3, "FETCH", **DAVE, client_address="2001:db8:0:0:0:0:0:1"),
        request(4, "PRODUCE", **OTHER),
        request(4, "FETCH", **OTHER, client_address="10.0.0.9", replica_id=2),
        request(-2 * 86_400, "FETCH", **OTHER, client_address="10.0.0.9"),
    ],
    "topics": [TOPIC | {"is_removed": False}],
    "traffic": [moved(0, 99, **DAVE, topic=None, topic_id=TOPIC_ID)],
    "client_coverage": [INSTANCE],
}


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> FolderReader:
    return made(tmp_path_factory.mktemp("subject"), CONTENT)


def made(folder: Path, content: dict[str, list[Row]]) -> FolderReader:
    warehouse = Warehouse(config.WarehouseSection(path=str(folder)))
    make_tables(warehouse, content)
    return FolderReader(warehouse)


def resolved(reader: FolderReader, name: str) -> Subject:
    return resolve(reader, "cluster_id = 'c1'", name, at(-86_400))


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("etl.a:b,c=d", "group etl.a:b,c=d"),
        ("tx-1", "transactional id tx-1"),
        ("orders.eu", "topic orders.eu"),
        (TOPIC_ID, "topic orders.eu"),
        ("10.0.0.9", "address 10.0.0.9"),
        ("/10.0.0.9:51234", "address 10.0.0.9"),
        ("2001:db8::1", "address 2001:db8::1"),
        ("[2001:DB8:0:0:0:0:0:1]:51234", "address 2001:db8::1"),
        (ID, f"client instance {ID}"),
    ],
)
def test_a_name_that_leads_to_clients_has_those(
    reader: FolderReader, name: str, meaning: str
) -> None:
    subject = resolved(reader, name)
    assert subject.meanings == (meaning,)
    assert subject.clients == (("User:dave", "exports"),)
    assert subject.topics == (("orders.eu",) if meaning.startswith("topic") else ())


@pytest.mark.parametrize(
    ("name", "meanings"),
    [
        ("dave", ("principal User:dave",)),
        ("exports", ("client id exports",)),
        (ARN, (f"principal User:{ARN}",)),
        ("other", ("client id other",)),
        # Of an earlier day: that counts only where the last day has nothing of the name.
        ("left", ("client id left",)),
    ],
)
def test_a_principal_or_a_client_id_is_itself(
    reader: FolderReader, name: str, meanings: tuple[str, ...]
) -> None:
    subject = resolved(reader, name)
    assert (subject.meanings, subject.clients) == (meanings, ())


def test_a_pattern_is_the_client_ids_that_it_matches(reader: FolderReader) -> None:
    subject = resolved(reader, "*o*t*")
    assert subject.meanings == ("2 client ids like *o*t*",)
    assert subject.client_ids == ("*o*t*", "exports", "other")
    assert resolved(reader, "exp*").client_ids == ("exp*", "exports")
    with pytest.raises(UnknownNameError):
        resolved(reader, "e*xp")


@given(st.text("ab\n."), st.text("ab.*"))
def test_a_star_is_any_text_and_nothing_else_is_special(text: str, pattern: str) -> None:
    assert is_like(text, pattern) == fnmatchcase(text, pattern)


def test_a_client_cannot_choose_an_id_that_no_search_ends() -> None:
    assert not is_like("a" * 2_000, "a*" * 30 + "b")


def test_the_client_ids_beyond_the_most_are_counted(tmp_path: Path) -> None:
    many = [
        used(0, "producer_byte_rate", 9.0, **DAVE | {"client_id": f"app-{n}"}) for n in range(201)
    ]
    subject = resolved(made(tmp_path, {"quota_usage": many}), "app-*")
    assert subject.meanings == ("201 client ids like app-* (the first 200)",)
    assert len(subject.client_ids) == 1 + 200


@pytest.mark.parametrize(
    ("name", "near"), [("exprots", "exports"), ("orders", "orders.eu"), ("User:dav", "User:dave")]
)
def test_an_unknown_name_gets_the_nearest(reader: FolderReader, name: str, near: str) -> None:
    with pytest.raises(UnknownNameError, match=rf"{name} \(did you mean {near}\?\)"):
        resolved(reader, name)


def test_names_of_another_cluster_mean_nothing(reader: FolderReader) -> None:
    with pytest.raises(UnknownNameError):
        resolved(reader, "far")
