"""Names of error codes, against those of Kafka."""

import re

from quotaflow.pipelines.warehouse import views

from .kafka_programs import printed


def test_every_error_has_the_name_that_kafka_gives_it() -> None:
    ours = re.findall(r"\((-?\d+), '(\w+)'\)", views.load()["error_names"].sql)
    assert sorted(" ".join(pair) for pair in ours) == sorted(printed("ErrorNames"))
