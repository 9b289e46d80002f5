"""Facts with pseudonyms in the place of what names a client, before anything is written."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quotaflow.udfs import pseudonyms as udf
from quotaflow.udfs.otlp.codecs import Limits
from quotaflow.udfs.rules.pseudonym import Pseudonyms

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_pseudonyms(facts: "DataFrame", pseudonyms: Pseudonyms | None) -> "DataFrame":
    """Rows with the client hidden in its columns and in their body; as they are without a key."""
    if pseudonyms is None:
        return facts
    return facts.mapInArrow(udf.hide_columns(pseudonyms), facts.schema)


def with_hidden_payloads(
    pushes: "DataFrame", pseudonyms: Pseudonyms | None, limits: Limits
) -> "DataFrame":
    """Pushes whose payloads no longer name their client; as they are without a key."""
    if pseudonyms is None:
        return pushes
    return pushes.mapInArrow(udf.hide_payloads(pseudonyms, limits), pushes.schema)


def without_heads(quarantined: "DataFrame") -> "DataFrame":
    """Unreadable lines without their first bytes: what cannot be read cannot be searched."""
    nothing = F.lit(None)
    return quarantined.withColumns(
        {"head": nothing.cast("binary"), "detail": nothing.cast("string")}
    )
