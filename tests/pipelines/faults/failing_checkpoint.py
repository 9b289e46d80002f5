"""Runs jobs over and over while Spark cannot write one file of their checkpoints after the other.

`python -m tests.pipelines.faults.failing_checkpoint CALM TROUBLED FAULTS JOB...`: the first conf's
run fails nowhere, the second's at each of FAULTS (JSON: at the write or the rename, and a pattern
of a file's path), in this order: each run goes on where the one before failed. The class path must
have the files of checkpoints of Spark's own tests (FailureInjectionCheckpointFileManager).
"""

import json
import sys
from pathlib import Path
from typing import Any

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.spark import session

from . import driver

_SETTERS = {"write": "failureCreateAtomicRegex_$eq", "rename": "createAtomicDelayCloseRegex_$eq"}
_REPORTS = {
    "write": "Fake File System Create Atomic Failure",
    "rename": "Fake File Stream Close Failure",
}


class Checkpoints:
    """The checkpoints of a warehouse, whose files fail where the test says."""

    def __init__(self, conf: Conf) -> None:
        spark = session.get(conf.spark)
        self.jvm: Any = spark._jvm
        self.folder = str(conf.warehouse.checkpoint_folder)
        state = self.jvm.org.apache.spark.sql.execution.streaming.state
        self.state = state.FailureInjectionFileSystem.registerTempPath(self.folder)

    def set(self, how: str, *patterns: str) -> None:
        """From now on these files, and no others, cannot be created, or not renamed."""
        given = self.jvm.java.util.ArrayList()
        for pattern in patterns:
            given.add(f".*{self.folder}/{pattern}")
        seq = self.jvm.scala.jdk.javaapi.CollectionConverters.asScala(given).toSeq()
        getattr(self.state, _SETTERS[how])(seq)


def main(calm: str, troubled: str, faults: str, *jobs: str) -> None:
    """Run the calm one, then the troubled one, until it is through."""
    driver.keep_few_results()
    conf = driver.conf_of(Path(calm))
    Checkpoints(conf)
    assert driver.error_of(conf, jobs) is None
    conf = driver.conf_of(Path(troubled))
    checkpoints = Checkpoints(conf)
    for how, pattern in json.loads(faults):
        checkpoints.set(how, pattern)
        error = driver.error_of(conf, jobs)
        checkpoints.set(how)
        report = f"{how} {pattern}: {error}"
        assert _REPORTS[how] in (error or ""), report
        sys.stdout.write(f"{report}\n")
    assert driver.error_of(conf, jobs) is None


if __name__ == "__main__":
    main(*sys.argv[1:])
