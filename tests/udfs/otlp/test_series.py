"""A series keeps its id from push to push, and no two series share one."""

import pyarrow as pa
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, Sum

from quotaflow.udfs.otlp import batch
from quotaflow.udfs.otlp.codecs import Limits
from quotaflow.udfs.otlp.series import series_ids

from ... import case_tables
from ...cases import cases
from .otlp_made import attribute, gauge, payload, point

MEMBER_1 = [attribute("member_id", string_value="one")]
MEMBER_2 = [attribute("member_id", string_value="two")]


def tagged(*tags):
    return point(attributes=[attribute(key, string_value=value) for key, value in tags])


def ids(*metrics, instance="i1", resource=()):
    decoded = batch.read([payload(*metrics, resource=resource)], {}, Limits())
    rows = decoded.keep.nonzero()[0]
    return series_ids(decoded, rows, pa.array([instance] * len(rows), pa.string())).to_pylist()


def test_a_series_id_is_what_it_was():
    """Written down: tables hold ids, so this number may never change."""
    assert ids(gauge(tagged(("topic", "orders")))) == [-1169906075950667553]


@cases(
    ("one", "other"),
    *case_tables.rows(
        __file__, "the_same_series", ids, gauge, tagged, point, MEMBER_1=MEMBER_1, MEMBER_2=MEMBER_2
    ),
    (
        "beside others or alone",
        ids(gauge(point(), name="n"), gauge(point()))[1:],
        ids(gauge(point())),
    ),
)
def test_the_same_series(one, other):
    assert one == other


@cases(
    "other",
    ("another metric", ids(gauge(point(), name="n"))),
    ("another instance", ids(gauge(point()), instance="i2")),
    ("an attribute", ids(gauge(tagged(("m", ""))))),
    ("another kind", ids(Metric(name="m", sum=Sum(data_points=[point()])))),
    ("no instance", ids(gauge(point()), instance=None)),
)
def test_another_series(other):
    assert other != ids(gauge(point()))


def test_texts_do_not_run_into_each_other():
    pairs = [("ab", "c"), ("a", "bc"), ("a", "b"), ("", "abc")]
    series = [ids(gauge(tagged(pair))) for pair in pairs]
    assert len({i for (i,) in series}) == len(pairs)


def test_without_an_instance_the_resource_tells_series_apart():
    one, other = (ids(gauge(point()), instance=None, resource=r) for r in (MEMBER_1, MEMBER_2))
    assert one != other
