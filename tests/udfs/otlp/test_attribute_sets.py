"""Attribute sets read together are the sets that protobuf reads one by one."""

import random
from itertools import groupby

import numpy as np
import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import NumberDataPoint

from quotaflow.udfs.otlp import remembered
from quotaflow.udfs.otlp.attribute_sets import UNREAD, AttributeSets, repeated
from quotaflow.udfs.otlp.codecs import Limits

from ...cases import cases
from .otlp_made import attribute

LIMITS = Limits()
TIGHT = Limits(attributes=2, string_chars=4)


def encoded(*pairs):
    attributes = [attribute(key, **value) for key, value in pairs]
    return NumberDataPoint(attributes=attributes).SerializeToString()


def made(chance, count):
    """Sets of few keys in any order, with texts of few lengths; some odd, some broken."""
    keys, sets = ["topic", "partition", "é", "k"], set()
    while len(sets) < count:
        picked = chance.sample(keys, chance.randrange(1, 4))
        size = chance.randrange(5)
        values = [{"string_value": f"{chance.randrange(10**size):0{size}}"} for _ in picked]
        if chance.random() < 0.2:
            values[0] = chance.choice([{}, {"int_value": 7}, {"string_value": "é"}])
        if chance.random() < 0.05:
            picked[-1] = picked[0]
        data = bytearray(encoded(*zip(picked, values, strict=True)))
        if chance.random() < 0.1:
            data[chance.randrange(len(data))] = chance.randrange(256)
        sets.add(bytes(data))
    return sorted(sets, key=len)


@cases("limits", ("limits", LIMITS), ("tight limits", TIGHT))
@pytest.mark.parametrize("seed", range(6))
def test_together_as_one_by_one(seed, limits):
    sets, read = AttributeSets(limits), {}
    for size, group in groupby(made(random.Random(seed), 1_500), key=len):
        same_size = list(group)
        cells = np.frombuffer(b"".join(same_size), np.uint8).reshape(-1, size)
        for data, number in zip(same_size, sets.numbers(cells).tolist(), strict=True):
            tags = remembered.attributes(data, limits)
            assert (number == UNREAD) == (tags is None)
            if tags is not None:
                assert read.setdefault(number, tags) == tags
    assert sorted(read) == list(range(len(sets)))
    assert len(set(read.values())) == len(read)
    in_order = [read[number] for number in range(len(sets))]
    assert sets.maps().to_pylist() == [list(tags) for tags in in_order]
    assert sets.characters().tolist() == [tags.characters for tags in in_order]
    assert sets.digests().tolist() == [tags.digest for tags in in_order]
    assert sets.keys == {key for tags in in_order for key, _ in tags}
    for key in sets.keys:
        assert sets.column(key).to_pylist() == [dict(tags).get(key) or None for tags in in_order]


def test_one_number_in_any_order_of_keys():
    pairs = [(("a", {"string_value": f"{n:02}"}), ("b", {"string_value": "x"})) for n in range(50)]
    sets, forward = AttributeSets(LIMITS), [encoded(*pair) for pair in pairs]
    numbers = [
        sets.numbers(np.array([list(data) for data in each], np.uint8)).tolist()
        for each in (forward, [encoded(*reversed(pair)) for pair in pairs])
    ]
    assert numbers == [list(range(50))] * 2
    assert [sets.number(data) for data in forward] == list(range(50))
    assert sets.maps().to_pylist() == [[("a", f"{n:02}"), ("b", "x")] for n in range(50)]


def test_empty_values_of_many_keys():
    data = [encoded((f"k{n:02}", {"string_value": ""})) for n in range(50)]
    sets = AttributeSets(LIMITS)
    numbers = sets.numbers(np.array([list(each) for each in data], np.uint8))
    assert sorted(numbers.tolist()) == list(range(50))
    assert sets.maps().take(numbers).to_pylist() == [[(f"k{n:02}", "")] for n in range(50)]


@pytest.mark.parametrize("pairs", [[], [("a", "1")], [("é", ""), ("k", "é")], [("a", None)]])
def test_one_map_repeated(pairs):
    sets = AttributeSets(LIMITS)
    values = [(key, {} if value is None else {"string_value": value}) for key, value in pairs]
    sets.number(encoded(*values))
    for count in (0, 1, 3):
        assert repeated(sets.maps(), count).to_pylist() == [sorted(pairs)] * count
