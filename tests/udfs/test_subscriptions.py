"""Whatever an answer holds, a batch of them gets its expected ids."""

import pyarrow as pa

from quotaflow.schemas.tables.telemetry import TELEMETRY_SUBSCRIPTIONS
from quotaflow.udfs.subscriptions import with_expected_id

SOUND = {
    "error_code": 0,
    "requested_metrics": ["*"],
    "push_interval_ms": 1_000,
    "client_instance_id": "vl7CCx68Qw29SsxmLSK4Xg",
}


def test_answers_that_cannot_have_an_id_have_none():
    answers = [
        SOUND,
        SOUND | {"error_code": 42},
        SOUND | {"client_instance_id": None},
        SOUND | {"client_instance_id": "; DROP TABLE"},
        SOUND | {"requested_metrics": None},
        SOUND | {"requested_metrics": ["a", None]},
        SOUND | {"push_interval_ms": None},
    ]
    batch = pa.RecordBatch.from_pylist(answers, schema=TELEMETRY_SUBSCRIPTIONS.arrow)
    (filled,) = with_expected_id(iter([batch]))
    assert filled.schema == batch.schema
    assert filled.column("expected_subscription_id").to_pylist() == [33638279, *[None] * 6]
