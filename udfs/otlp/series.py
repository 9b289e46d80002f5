"""Ids of time series, which are equal from push to push of one client instance."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from quotaflow.schemas.table import LONG
from quotaflow.udfs.otlp.arrays import Ints, Unsigned
from quotaflow.udfs.otlp.attributes import digest
from quotaflow.udfs.otlp.batch import DecodedBatch

# Odd constants of the 64-bit finalizer of MurmurHash3. They must never change.
_FIRST, _SECOND = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_SHIFT = np.uint64(33)


def series_ids(batch: DecodedBatch, rows: Ints, instances: Any) -> Any:
    """The series_id of each point at `rows`: 64 bits of client, metric, kind, and attributes.

    `instances` is the client_instance_id of each of these rows. The resource is not used,
    because a client that rejoins its group gets another member id and its counters go on. For a
    point without an instance (in a Collector's batch) the resource identifies the client.
    """
    numbers, names = batch.points.numbers, batch.points.names
    own = instances.dictionary_encode()
    of_instance = _hashes(digest((text,)) for text in own.dictionary.to_pylist())
    if instances.null_count:
        is_null = own.indices.is_null().to_numpy(zero_copy_only=False)
        hashes = batch.resources.digests()[batch.resource[rows]]
        hashes[~is_null] = of_instance[own.indices.drop_null().to_numpy()]
    else:
        hashes = of_instance[own.indices.to_numpy()]
    for part, codes in (
        (_hashes(digest((name,)) for name, _ in names.headers), numbers.header),
        (_hashes(digest((form.kind,)) for form in names.forms), numbers.form),
        (names.attributes.digests(), numbers.attributes),
    ):
        hashes = _mixed(hashes, part[codes[rows]])
    return pa.array(hashes.view(np.int64), LONG)


def _hashes(digests: Iterable[int]) -> Unsigned:
    return np.fromiter(digests, np.uint64)


def _mixed(left: Unsigned, right: Unsigned) -> Unsigned:
    mixed: Unsigned = (left * _FIRST) ^ (right + _SECOND)
    mixed ^= mixed >> _SHIFT
    mixed *= _SECOND
    mixed ^= mixed >> _SHIFT
    return mixed
