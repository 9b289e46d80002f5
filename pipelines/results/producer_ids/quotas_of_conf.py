"""Quotas of producer ids from conf, as rows and parameters of the rules."""

import pyarrow as pa

from quotaflow.pipelines.config import ProducerIdsSection
from quotaflow.schemas.table import LONG, STRING

RELATION = "producer_id_quotas"
"""The relation's name: `principal`, `quota_milli` (thousandths of an id per second)."""

_MILLI = 1_000
_SCHEMA = pa.schema([pa.field("principal", STRING), pa.field("quota_milli", LONG)])


def rows(conf: ProducerIdsSection) -> dict[str, pa.Table]:
    """The principals that have a quota of their own."""
    quotas = [
        {"principal": f"User:{user}", "quota_milli": _milli(quota)}
        for user, quota in conf.quotas.items()
    ]
    return {RELATION: pa.Table.from_pylist(quotas, schema=_SCHEMA)}


def parameters(conf: ProducerIdsSection) -> dict[str, int | None]:
    """The quota of all other principals: `$default_quota_milli`; None: they are unlimited."""
    quota = conf.default_quota_per_s
    return {"default_quota_milli": None if quota is None else _milli(quota)}


def _milli(quota_per_s: float) -> int:
    return round(quota_per_s * _MILLI)
