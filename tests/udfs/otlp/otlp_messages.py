"""Made-up OTLP: hypothesis strategies for every form a metric can take."""

from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    ArrayValue,
    InstrumentationScope,
    KeyValue,
    KeyValueList,
)
from opentelemetry.proto.metrics.v1 import metrics_pb2 as otlp
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

LONGS = st.integers(0, 2**64 - 1)
COUNTS = st.lists(LONGS, max_size=3)
DOUBLES = st.floats()
TIMES = st.sampled_from([0, 1, 999, 1_790_000_000_000_000_000, 2**63, 2**64 - 1])
TEXT = st.text(max_size=12)
KEYS = st.sampled_from(
    ["topic", "partition", "node_id", "node.id", "group_id", "member_id", "client_rack", "k", ""]
)
TAGS = st.one_of(TEXT, st.sampled_from(["node-2", "node--1", "node-2147483646", "7", "orders"]))


def values():
    scalar = st.one_of(
        st.just(AnyValue()),
        st.builds(AnyValue, string_value=TAGS),
        st.builds(AnyValue, bool_value=st.booleans()),
        st.builds(AnyValue, int_value=st.integers(-(2**63), 2**63 - 1)),
        st.builds(AnyValue, double_value=DOUBLES),
        st.builds(AnyValue, bytes_value=st.binary(max_size=5)),
    )
    return st.recursive(
        scalar,
        lambda inner: st.one_of(
            st.builds(
                AnyValue, array_value=st.builds(ArrayValue, values=st.lists(inner, max_size=3))
            ),
            st.builds(
                AnyValue,
                kvlist_value=st.builds(KeyValueList, values=st.lists(pairs(inner), max_size=3)),
            ),
        ),
        max_leaves=5,
    )


def pairs(value):
    return st.builds(KeyValue, key=st.one_of(KEYS, TEXT), value=value)


ATTRIBUTES = st.lists(pairs(values()), max_size=4)


@st.composite
def numbers(draw, kind, **fields):
    """A number point or exemplar: double, integer or neither."""
    value = draw(
        st.one_of(
            st.builds(dict, as_double=DOUBLES),
            st.builds(dict, as_int=st.integers(-(2**63), 2**63 - 1)),
            st.just({}),
        )
    )
    return kind(**{name: draw(field) for name, field in fields.items()}, **value)


EXEMPLARS = st.lists(
    numbers(
        otlp.Exemplar,
        filtered_attributes=ATTRIBUTES,
        time_unix_nano=TIMES,
        span_id=st.binary(max_size=8),
        trace_id=st.binary(max_size=16),
    ),
    max_size=2,
)
SHARED = {
    "start_time_unix_nano": TIMES,
    "time_unix_nano": TIMES,
    "attributes": ATTRIBUTES,
    "flags": st.sampled_from([0, 1, 2**32 - 1]),
}
TEMPORALITIES = st.sampled_from([0, 1, 2])
BUCKETS = st.builds(
    otlp.ExponentialHistogramDataPoint.Buckets,
    offset=st.integers(-(2**31), 2**31 - 1),
    bucket_counts=COUNTS,
)


def optional(**fields):
    """Each field set or left out, as proto3's optional fields can be."""
    return st.fixed_dictionaries({}, optional=fields)


def histograms():
    sums = optional(sum=DOUBLES, min=DOUBLES, max=DOUBLES)
    shared = SHARED | {"count": LONGS, "exemplars": EXEMPLARS}
    plain = st.fixed_dictionaries(
        shared | {"explicit_bounds": st.lists(DOUBLES, max_size=3), "bucket_counts": COUNTS}
    )
    exponential = st.fixed_dictionaries(
        shared
        | {
            "scale": st.integers(-10, 20),
            "zero_count": LONGS,
            "zero_threshold": DOUBLES,
            "positive": BUCKETS,
            "negative": BUCKETS,
        }
    )
    return (
        st.builds(lambda a, b: otlp.HistogramDataPoint(**a, **b), plain, sums),
        st.builds(lambda a, b: otlp.ExponentialHistogramDataPoint(**a, **b), exponential, sums),
    )


def summaries():
    quantile = st.builds(
        otlp.SummaryDataPoint.ValueAtQuantile, quantile=st.floats(0, 1), value=DOUBLES
    )
    return st.builds(
        otlp.SummaryDataPoint,
        **SHARED,
        count=LONGS,
        sum=DOUBLES,
        quantile_values=st.lists(quantile, max_size=3),
    )


def metrics(names=TEXT):
    def few(points):
        return st.lists(points, max_size=3)

    number = st.one_of(
        numbers(otlp.NumberDataPoint, **SHARED),
        numbers(otlp.NumberDataPoint, **SHARED, exemplars=EXEMPLARS),
    )
    histogram, exponential = histograms()
    named = {"name": names, "unit": TEXT, "description": TEXT}
    temporality = {"aggregation_temporality": TEMPORALITIES}
    monotonic = {"is_monotonic": st.booleans()}
    return st.one_of(
        st.builds(otlp.Metric, **named),
        st.builds(otlp.Metric, **named, gauge=st.builds(otlp.Gauge, data_points=few(number))),
        st.builds(
            otlp.Metric,
            **named,
            sum=st.builds(otlp.Sum, data_points=few(number), **temporality, **monotonic),
        ),
        st.builds(
            otlp.Metric,
            **named,
            histogram=st.builds(otlp.Histogram, data_points=few(histogram), **temporality),
        ),
        st.builds(
            otlp.Metric,
            **named,
            exponential_histogram=st.builds(
                otlp.ExponentialHistogram, data_points=few(exponential), **temporality
            ),
        ),
        st.builds(
            otlp.Metric, **named, summary=st.builds(otlp.Summary, data_points=few(summaries()))
        ),
    )


def messages():
    """MetricsData; a metric has mostly a name."""
    resource = st.builds(Resource, attributes=ATTRIBUTES)
    scope = st.builds(InstrumentationScope, name=TEXT, version=TEXT)
    named = metrics(st.text(min_size=1, max_size=12))
    scopes = st.builds(otlp.ScopeMetrics, scope=scope, metrics=st.lists(named, max_size=3))
    resources = st.builds(
        otlp.ResourceMetrics, resource=resource, scope_metrics=st.lists(scopes, max_size=2)
    )
    return st.builds(otlp.MetricsData, resource_metrics=st.lists(resources, max_size=3))
