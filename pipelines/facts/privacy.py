"""Facts with pseudonyms in place of the names of clients, before anything is written."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quotaflow.udfs import pseudonyms as udf
from quotaflow.udfs.otlp.codecs import Limits
from quotaflow.udfs.rules.pseudonym import Pseudonyms

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_pseudonyms(facts: "DataFrame", pseudonyms: Pseudonyms | None) -> "DataFrame":
    """Rows with pseudonyms in client columns and in the body; unchanged without a key."""
    if pseudonyms is None:
        return facts
    return facts.mapInArrow(udf.hide_columns(pseudonyms), facts.schema)


def with_hidden_payloads(
    pushes: "DataFrame", pseudonyms: Pseudonyms | None, limits: Limits
) -> "DataFrame":
    """Pushes whose payloads do not name their client; unchanged without a key."""
    if pseudonyms is None:
        return pushes
    return pushes.mapInArrow(udf.hide_payloads(pseudonyms, limits), pushes.schema)


def without_heads(quarantined: "DataFrame") -> "DataFrame":
    """Unreadable lines without their first bytes, because no name can be found and hidden there."""
    nothing = F.lit(None)
    return quarantined.withColumns(
        {"head": nothing.cast("binary"), "detail": nothing.cast("string")}
    )
