"""Ids of time series, which are equal from push to push of one client instance."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quotaflow.schemas.table import LONG
from quotaflow.udfs.otlp.attributes import digest
from quotaflow.udfs.otlp.batch import DecodedBatch
from quotaflow.udfs.otlp.payloads import Ints

_Hashes = npt.NDArray[np.uint64]
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
    of_resource = _hashes(tags.digest for tags in batch.resources)[batch.resource[rows]]
    if len(of_instance):
        indices = own.indices.fill_null(0).to_numpy(zero_copy_only=False)
        is_null = own.indices.is_null().to_numpy(zero_copy_only=False)
        hashes = np.where(is_null, of_resource, of_instance[indices])
    else:
        hashes = of_resource
    for part, codes in (
        (_hashes(digest((name,)) for name, _ in names.headers), numbers.header),
        (_hashes(digest((form.kind,)) for form in names.forms), numbers.form),
        (names.attributes.digests(), numbers.attributes),
    ):
        hashes = _mixed(hashes, part[codes[rows]])
    return pa.array(hashes.view(np.int64), LONG)


def _hashes(digests: Iterable[int]) -> _Hashes:
    return np.fromiter(digests, np.uint64)


def _mixed(left: _Hashes, right: _Hashes) -> _Hashes:
    mixed: _Hashes = (left * _FIRST) ^ (right + _SECOND)
    mixed ^= mixed >> _SHIFT
    mixed *= _SECOND
    mixed ^= mixed >> _SHIFT
    return mixed
