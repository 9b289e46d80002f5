"""The decoder against its slow twin: on real payloads, made-up ones, and both of them damaged."""

import random

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quotaflow.udfs.otlp import decode, foreign
from quotaflow.udfs.otlp.codecs import Limits

from ...cases import cases
from . import otlp_made, otlp_messages, otlp_twin
from .otlp_made import attribute, gauge, point

LIMITS = Limits()
TIGHT = Limits(points=4, attributes=2, string_chars=5, nesting=1)
SAMPLES = ("java-cons-bob", "java-prod-alice", "rdk-cons-carol", "rdk-idem-alice")
SLOW = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@pytest.fixture(scope="module")
def samples(golden):
    return [(golden / f"otlp/{name}.data.bin").read_bytes() for name in SAMPLES]


def decoded(payloads, limits):
    """What otlp_twin.decode returns for each payload; `check` must say the same."""
    arrays = pa.array(payloads, pa.binary()), pa.array(["none"] * len(payloads))
    (run,) = decode.decode(*arrays, limits)
    assert decode.check(*arrays, limits).equals(run.status)
    reasons, *counts = (run.status.column(i).to_pylist() for i in (2, 4, 5, 6))
    # Damaged bytes may look like another form of a payload.
    reasons = ["not_otlp" if reason in foreign.REASONS else reason for reason in reasons]
    results = [
        (None if reason else [], reason, *counts_of_one)
        for reason, *counts_of_one in zip(reasons, *counts, strict=True)
    ]
    for parent, row in zip(run.parent.to_pylist(), run.points.to_pylist(), strict=True):
        results[parent][0].append(row)
    return results


def assert_same(payloads, limits=LIMITS):
    for payload, result in zip(payloads, decoded(payloads, limits), strict=True):
        expected = otlp_twin.decode(payload, limits)
        assert otlp_twin.comparable(list(result)) == otlp_twin.comparable(list(expected))


@cases("times", ("one by one", 1), ("by layout", 5))
def test_real_payloads(samples, times):
    assert_same(samples * times)


@SLOW
@given(otlp_messages.messages(), st.sampled_from([LIMITS, TIGHT]), st.sampled_from([1, 5]))
def test_every_form_of_metric(message, limits, times):
    assert_same([message.SerializeToString()] * times, limits)


@SLOW
@given(otlp_messages.messages(), st.randoms(use_true_random=False))
def test_damaged_messages_between_whole_ones(message, chance):
    whole = message.SerializeToString()
    assert_same([whole, *(damaged(whole, chance) for _ in range(5)), whole])


@pytest.mark.parametrize("seed", range(40))
def test_damaged_real_payloads_cost_only_themselves(samples, seed):
    chance = random.Random(seed)
    whole = samples[seed % len(samples)]
    assert_same([whole] * 3 + [damaged(whole, chance) for _ in range(8)] + [whole])


def damaged(payload, chance):
    """Bytes changed, taken out, put in twice, or cut off at the end."""
    data = bytearray(payload)
    for _ in range(chance.choice([1, 1, 2, 5])):
        at, size = chance.randrange(len(data) + 1), chance.randrange(1, 30)
        piece = data[at : at + size]
        data[at : at + size] = chance.choice(
            [bytes([chance.randrange(256)]) + piece[1:], b"", piece + piece, piece[::-1]]
        )
    return bytes(data[: chance.choice([None, None, chance.randrange(len(data) + 1)])])


@cases("limits", ("limits", LIMITS), ("tight limits", TIGHT))
@pytest.mark.parametrize("seed", range(4))
def test_many_clients_with_attributes_of_their_own(seed, limits):
    chance = random.Random(seed)
    payloads = [client_payload(chance, f"{n % 80:02}") for n in range(160)]
    assert_same([damaged(p, chance) if chance.random() < 0.1 else p for p in payloads], limits)


def client_payload(chance, number):
    """Few metrics of one client; some differ in their names, and some are odd."""
    topic = chance.choice([f"t-{number}", f"t-{number}", "é"])
    pairs = [
        attribute("topic", string_value=topic),
        chance.choice(
            [attribute("partition", string_value=number), attribute("node.id", int_value=2)]
        ),
    ]
    chance.shuffle(pairs)
    metrics = [
        gauge(point(attributes=pairs, as_double=1.5), point(attributes=pairs), name=f"n{number}"),
        gauge(point(attributes=pairs[:1], start_time_unix_nano=7), name="m", unit=number),
    ]
    return otlp_made.payload(*metrics, resource=[attribute("group_id", string_value=number)])
