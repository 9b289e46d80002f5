"""The MAC of a record covers all that decides, and no two different records have the same."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines import config
from quotaflow.pipelines.config import Conf, FeedbackSection, WarehouseSection
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.ledger import deployment
from quotaflow.pipelines.feedback.ledger.journal import to_record, to_row
from quotaflow.pipelines.feedback.ledger.ledger import Record
from quotaflow.pipelines.feedback.ledger.signing import LEASE, RECORD, Signer

from ....cases import cases
from ....delta_tables import NOON
from ..fake_configs import forged

SIGNER = Signer((b"k" * 32,), "here")
RECORD_OF_NOON = forged(ConfigEntity("c1", "user", "eve"), "producer_byte_rate", "2000", "3000")
OTHERS: dict[str, Any] = {
    "entity": ConfigEntity("c1", "user", "zoe"),
    "event_time": NOON + timedelta(microseconds=1),
    "expires_at": None,
    "number": 7,
    "sequence": 8,
    "observed": 2.0,
}


def test_a_record_verifies_as_it_was_signed_and_read_back() -> None:
    signed = SIGNER.signed(RECORD_OF_NOON, 3)
    assert (signed.sequence, signed.deployment) == (3, "here")
    assert SIGNER.verifies(signed)
    assert SIGNER.verifies(to_record(to_row(signed, "me")))
    east = timezone(timedelta(hours=5))
    assert SIGNER.verifies(replace(signed, event_time=signed.event_time.astimezone(east)))
    assert SIGNER.verifies(replace(signed, detail="added by an end"))
    assert not SIGNER.verifies(RECORD_OF_NOON)


@pytest.mark.parametrize(
    "name", [each.name for each in fields(Record) if each.name not in {"detail", "mac"}]
)
def test_whatever_is_altered_it_does_not_verify(name: str) -> None:
    signed = SIGNER.signed(RECORD_OF_NOON, 3)
    altered = replace(signed, **{name: OTHERS.get(name, f"{getattr(signed, name)}0")})
    assert altered != signed
    assert not SIGNER.verifies(altered)


@cases(
    "entity",
    ("another cluster", ConfigEntity("c2", "user", "eve")),
    ("another type", ConfigEntity("c1", "client-id", "eve")),
    ("the default", ConfigEntity("c1", "user", None)),
    ("a client id", ConfigEntity("c1", "user", "eve", "app")),
    ("an empty client id", ConfigEntity("c1", "user", "eve", "")),
)
def test_it_is_of_one_entity(entity: ConfigEntity) -> None:
    assert not SIGNER.verifies(replace(SIGNER.signed(RECORD_OF_NOON, 3), entity=entity))


PARTS = st.lists(st.none() | st.text(max_size=3) | st.sampled_from(["-", "+", "\0", "ab"]))


@given(PARTS, PARTS)
def test_fields_cannot_be_moved_into_each_other(
    one: list[str | None], other: list[str | None]
) -> None:
    assert SIGNER.is_valid(RECORD, other, SIGNER.mac(RECORD, one)) == (one == other)
    assert not SIGNER.is_valid(LEASE, one, SIGNER.mac(RECORD, one))


@pytest.mark.parametrize("mac", [None, "", "é", "\udc80", "0" * 64])
def test_no_text_is_taken_for_a_mac(mac: str | None) -> None:
    assert not SIGNER.is_valid(RECORD, ["a"], mac)


def test_keys_rotate_and_without_one_nothing_verifies() -> None:
    new, old = b"n" * 32, SIGNER.keys[0]
    signed = SIGNER.signed(RECORD_OF_NOON, 3)
    rotated = Signer((new, old), "here")
    assert rotated.verifies(signed)
    assert Signer((new,), "here").verifies(rotated.signed(RECORD_OF_NOON, 4))
    assert not Signer((new,), "here").verifies(signed)
    assert not Signer((), "here").verifies(signed)
    with pytest.raises(ConfigError, match=r"openssl rand -hex 32 > FILE"):
        Signer((), "here").signed(RECORD_OF_NOON, 3)


def test_a_key_is_in_no_text_of_it() -> None:
    assert "kkkk" not in repr(SIGNER)


def signer_of(conf: Conf, *, make: bool = False) -> Signer:
    return deployment.signer(conf.feedback, conf.warehouse, make=make)


def folder(path: Path, **section: Any) -> Conf:
    warehouse = WarehouseSection(path=str(path / "warehouse"))
    return Conf(warehouse=warehouse, feedback=FeedbackSection(**section))


def test_a_folder_has_a_key_and_a_name_of_its_own_after_the_first_write(
    tmp_path: Path, home: Path
) -> None:
    conf = folder(tmp_path)
    assert signer_of(conf).keys == ()
    assert not home.exists()
    made = signer_of(conf, make=True)
    assert signer_of(conf) == signer_of(conf, make=True) == made
    assert len(made.keys[0]) == 64
    modes = [oct(path.stat().st_mode)[-3:] for path in sorted(home.rglob("*"))]
    assert modes == ["700", "600", "600"]
    assert signer_of(folder(tmp_path / "b")).deployment != made.deployment
    (home / "feedback" / "id").write_text("of another machine")
    assert signer_of(conf).deployment != made.deployment


def test_a_catalog_needs_a_reference_before_it_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = WarehouseSection(catalog_schema="main.quotaflow")
    assert signer_of(Conf(warehouse=catalog)) == Signer((), "main.quotaflow")
    with pytest.raises(ConfigError, match="no key signs what is written: make one with"):
        signer_of(Conf(warehouse=catalog), make=True)
    monkeypatch.setenv("NEW", "n" * 32)
    monkeypatch.setenv("OLD", "o" * 32 + "\n")
    section = FeedbackSection(signing_keys=["env:NEW", "env:OLD"], deployment="prod")
    made = signer_of(
        Conf(warehouse=catalog, feedback=section),
        make=True,
    )
    assert made == Signer((b"n" * 32, b"o" * 32), "prod")


def test_a_key_that_others_can_read_or_that_is_short_is_refused(tmp_path: Path) -> None:
    key = tmp_path / "key"
    conf = folder(tmp_path, signing_keys=[f"file:{key}"])
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        signer_of(conf)
    key.write_text("hidden" * 8)
    key.chmod(0o640)
    with pytest.raises(ConfigError, match=f"can be read by others: chmod 600 {key}"):
        signer_of(conf)
    key.chmod(0o600)
    assert signer_of(conf).keys == (b"hidden" * 8,)
    key.write_text("hidden")
    with pytest.raises(ConfigError, match="has less than 32 bytes") as raised:
        signer_of(conf)
    assert "hidden" not in str(raised.value)


def test_a_key_in_plain_text_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError, match="a key is a reference") as raised:
        config.load(overrides=["feedback.signing_keys=[hidden]"])
    assert "hidden" not in str(raised.value)


def test_a_reference_without_a_scope_gets_that_of_conf() -> None:
    conf = config.load(overrides=["secrets.scope=ops", "feedback.signing_keys=['secret:mac']"])
    assert conf.feedback.signing_keys == ["secret:ops/mac"]


def test_a_whole_number_that_a_table_gives_back_as_a_fraction_verifies() -> None:
    signed = SIGNER.signed(replace(RECORD_OF_NOON, observed=7), 1)
    assert SIGNER.verifies(replace(signed, observed=7.0))


def test_times_of_any_precision_verify() -> None:
    whole = replace(RECORD_OF_NOON, event_time=datetime(2026, 11, 21, 12, tzinfo=UTC))
    assert SIGNER.verifies(to_record(to_row(SIGNER.signed(whole, 1), "me")))
