"""A job over a recorded topic, in a process of its own that may die of kill -9.

`python killed_job.py FOLDER JOB BATCH WRITES [MEMORY]` dies once this micro-batch has made so many
writes to tables, its JVM with it, for both are one process group. Exit code 0: it ended before.
"""

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from quotaflow.pipelines import config, session
from quotaflow.pipelines.sinks import Batch
from quotaflow.schemas.table import Table

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.pipelines.faults import recorded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def die_after(batch_id: int, writes: int) -> None:
    """Let this process group end after so many writes of a micro-batch; 0: before the first."""
    made = 0
    append, replace = Batch.append, Batch.replace

    def step(batch: Batch, done: int) -> None:
        nonlocal made
        if batch.batch_id == batch_id:
            made += done
            if made == writes:
                os.killpg(0, signal.SIGKILL)

    def append_counted(batch: Batch, frame: "DataFrame", table: Table) -> None:
        step(batch, 0)
        append(batch, frame, table)
        step(batch, 1)

    def replace_counted(batch: Batch, frame: "DataFrame", table: Table, where: str) -> None:
        step(batch, 0)
        replace(batch, frame, table, where)
        step(batch, 1)

    Batch.append, Batch.replace = append_counted, replace_counted


def main() -> None:
    """Run the job until it dies, or has read all."""
    folder, job = Path(sys.argv[1]), sys.argv[2]
    recorded.replace_topic(folder / "topic")
    die_after(int(sys.argv[3]), int(sys.argv[4]))
    memory = sys.argv[5] if sys.argv[5:] else "1g"
    settings = {**session.SHORT_LIVED, "spark.sql.parquet.enableVectorizedReader": "false"}
    spark = session.get(config.Spark(driver_memory=memory, conf=settings))
    recorded.run(recorded.setting(spark, folder, [job]), job)
    spark.stop()


if __name__ == "__main__":
    main()
