"""ingest.time_zone: a zone that conf takes is one that the parser of lines knows."""

import duckdb
import pytest
from pydantic import TypeAdapter, ValidationError

from quotaflow.pipelines.config.ingest import TimeZone, time_zones

from ...cases import cases

ZONE = TypeAdapter(TimeZone)


def test_the_parser_knows_every_zone_that_conf_takes() -> None:
    """A machine may have zones of its own, such as localtime: they would cost every line."""
    rows = duckdb.execute("SELECT name FROM pg_timezone_names()").fetchall()
    of_parser = {name for (name,) in rows}
    assert time_zones() - of_parser == set()


@cases(
    ("name", "hint"),
    ("a slip", "Europe/Berln", "did you mean Europe/Berlin?"),
    ("this machine's own", "localtime", "write one such as Europe/Berlin"),
    ("an abbreviation", "CEST", "did you mean"),
)
def test_another_name_is_refused_with_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(ValidationError, match=name) as refusal:
        ZONE.validate_python(name)
    assert hint in str(refusal.value)
