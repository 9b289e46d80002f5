"""Checks that a checkpoint belongs to its topic, by the topic's id, and to the tables it fills.

Spark does not notice a topic that was made again under its name and has grown past the checkpoint,
or a checkpoint that was lost or copied. Each of these loses or doubles rows silently.
"""

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from quotaflow.pipelines.errors import CheckpointError
from quotaflow.pipelines.streaming.checkpoints import newest_batch, query_id
from quotaflow.pipelines.warehouse import state_files
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.schemas.tables.declared import PIPELINE_PROGRESS

# No query has so many batches. Larger numbers are times in ms, of work outside of micro-batches.
_TIMES_BEGIN = 10**11
_OFFSETS = TypeAdapter(dict[str, dict[int, int]])
_CLUSTER_REMEDY = "it names the cluster. Name it in conf (kafka.cluster_id), or run the ingest job"
_START_REMEDY = (
    "it said where the job goes on after lost records. Put it back, or remove it: then the job "
    "reads its topic from the beginning, and writes rows again that the tables have"
)


@dataclass(frozen=True, slots=True)
class TopicIdentity:
    """The topic a checkpoint's offsets belong to; kept beside the checkpoint."""

    cluster_id: str
    topic: str
    topic_id: str


def check_topic(checkpoint: Path, now: TopicIdentity, *, accept_new: bool) -> None:
    """Raise CheckpointError unless the checkpoint belongs to this very topic.

    With `accept_new` a checkpoint of another topic is moved aside, and the topic is read from its
    beginning; the rows read before stay.
    """
    file = checkpoint.with_suffix(".topic.json")
    recorded = state_files.load(file, _topic_identity, _topic_remedy(file, now))
    if is_started(checkpoint) and recorded != now:
        if not accept_new:
            raise CheckpointError(_other_topic(checkpoint, recorded, now))
        set_aside(checkpoint)
    if recorded != now:
        _start_file(checkpoint).unlink(missing_ok=True)
        state_files.replace(file, json.dumps(asdict(now)))


def cluster_ids(checkpoints: Path) -> set[str]:
    """The clusters whose topics the checkpoints of this folder belong to.

    Raises CheckpointError if a file that names the topic is broken.
    """
    files = checkpoints.glob("*.topic.json") if checkpoints.is_dir() else ()
    loaded = (state_files.load(file, _topic_identity, _CLUSTER_REMEDY) for file in files)
    return {identity.cluster_id for identity in loaded if identity}


def restart_from(checkpoint: Path, offsets: Mapping[str, Mapping[str, int]]) -> None:
    """Move a checkpoint aside; the next query reads its topic from these offsets on."""
    state_files.replace(_start_file(checkpoint), json.dumps(offsets))
    set_aside(checkpoint)


def starting_offsets(checkpoint: Path) -> str:
    """Where a query without a batch starts to read, as Spark's Kafka source takes it.

    Raises CheckpointError if the file with the offsets is broken.
    """
    return state_files.load(_start_file(checkpoint), _offsets, _START_REMEDY) or "earliest"


def _topic_identity(text: str) -> TopicIdentity:
    return TopicIdentity(**{key: str(value) for key, value in json.loads(text).items()})


def _topic_remedy(file: Path, now: TopicIdentity) -> str:
    content = shlex.quote(json.dumps(asdict(now)))
    return (
        "it said which topic the offsets belong to. If the topic was not made again since the last "
        f"run, write it again with: printf %s {content} > {shlex.quote(str(file))}"
    )


def _offsets(text: str) -> str:
    """The text, if it has the offsets of a topic's partitions."""
    if not _OFFSETS.validate_json(text):
        raise ValueError(text)
    return text


def _start_file(checkpoint: Path) -> Path:
    return checkpoint.with_suffix(".start.json")


def set_aside(checkpoint: Path) -> None:
    """Move the checkpoint of a query aside: the next query starts over."""
    name = query_id(checkpoint) if is_named(checkpoint) else "nameless"
    aside = checkpoint.with_suffix(f".{name}.old")
    checkpoint.rename(aside)
    # Upkeep deletes it some days after this time; rename() does not change the time.
    os.utime(aside)


def batches_written(tables: Reader) -> dict[str, dict[str, int]]:
    """The newest micro-batch of every query in pipeline_progress, by job and the query's id.

    Batch numbers of a refresh are times in ms, and are left out.
    """
    newest = tables.rows(
        f"SELECT job, query_id, max(batch_id) AS batch_id FROM {PIPELINE_PROGRESS.name} "
        f"WHERE batch_id < {_TIMES_BEGIN} GROUP BY job, query_id"
    )
    by_job: dict[str, dict[str, int]] = {}
    for row in newest:
        by_job.setdefault(row["job"], {})[row["query_id"]] = row["batch_id"]
    return by_job


def check_tables(checkpoint: Path, batches: Mapping[str, int], *, accept_new: bool) -> None:
    """Raise CheckpointError if the checkpoint was lost, or is an old copy.

    `batches` are the newest batches of its job in the tables, from `batches_written`.
    """
    newest = newest_batch(checkpoint)
    if newest < 0 and not is_named(checkpoint):
        if batches and not accept_new and not _start_file(checkpoint).exists():
            raise CheckpointError(
                f"the checkpoint {checkpoint} is missing, but the tables have rows that "
                f"{checkpoint.name} wrote: starting over would write every row twice. Put the "
                "checkpoint back, or read the topic into other tables with "
                "--set warehouse.path=FOLDER"
            )
        return
    if newest >= 0:
        # From the first batch on, only the checkpoint says where to read next.
        _start_file(checkpoint).unlink(missing_ok=True)
    if not is_named(checkpoint):
        raise CheckpointError(_nameless(checkpoint, batches, newest))
    if old := _old_copy(checkpoint, batches):
        raise CheckpointError(f"{old}, and going on would lose rows. Restore the newer one")


def check_result(checkpoint: Path, batches: Mapping[str, int]) -> None:
    """Raise CheckpointError if the checkpoint of a result is damaged, or is an old copy.

    The checkpoint of a result may be missing. With an old copy the rows are right, but the counts
    are not: a batch number is counted once.
    """
    if is_started(checkpoint) and not is_named(checkpoint):
        raise CheckpointError(
            f"the checkpoint {checkpoint} lost its file metadata: {_recompute_hint(checkpoint)}"
        )
    if old := _old_copy(checkpoint, batches):
        raise CheckpointError(
            f"{old}, and its batches would not be counted until it has passed that one. "
            f"Restore the newer one, or {_recompute_hint(checkpoint)}"
        )


def _old_copy(checkpoint: Path, batches: Mapping[str, int]) -> str | None:
    newest = newest_batch(checkpoint)
    reached = batches.get(query_id(checkpoint), -1) if is_named(checkpoint) else -1
    if reached <= newest:
        return None
    return (
        f"the checkpoint {checkpoint} ends at batch {newest}, but the tables have batch {reached} "
        f"of {checkpoint.name}: it is an old copy"
    )


def _recompute_hint(checkpoint: Path) -> str:
    return (
        "remove the folder, and the job computes its results again: "
        f"rm -r {shlex.quote(str(checkpoint))}"
    )


def is_started(checkpoint: Path) -> bool:
    """Whether a query ever started on this checkpoint."""
    return is_named(checkpoint) or newest_batch(checkpoint) >= 0


def is_named(checkpoint: Path) -> bool:
    """Whether the checkpoint has the file with the query's id."""
    return (checkpoint / "metadata").exists()


def _nameless(checkpoint: Path, batches: Mapping[str, int], newest: int) -> str:
    """The error for a missing query id: with a new id the query would append its rows again."""
    file = checkpoint / "metadata"
    lost = f"the checkpoint {checkpoint} lost its file metadata, which holds the query's id: "
    ids = [query for query, batch in batches.items() if batch in {newest, newest - 1}]
    if len(ids) != 1:
        return f"{lost}put it back, or use another warehouse"
    # Exactly the bytes that Spark wrote, because the file with their checksum may still exist.
    content = json.dumps({"id": ids[0]}, separators=(",", ":"))
    return f"{lost}write it again with: printf %s {shlex.quote(content)} > {shlex.quote(str(file))}"


def _other_topic(checkpoint: Path, recorded: TopicIdentity | None, now: TopicIdentity) -> str:
    if recorded is None:
        was = "nothing says which topic its offsets belong to"
    elif recorded.cluster_id != now.cluster_id:
        was = f"it belongs to cluster {recorded.cluster_id}, and this is {now.cluster_id}"
    else:
        was = (
            f"it belongs to {recorded.topic} with id {recorded.topic_id}, "
            f"and now it has {now.topic_id}"
        )
    return (
        f"the checkpoint {checkpoint} does not fit topic {now.topic}: {was}. The topic was made "
        "again, or conf names another cluster. Check that, then start from the topic's beginning "
        "with --accept-new-topic"
    )
