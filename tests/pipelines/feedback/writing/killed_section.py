"""A run on a made-up cluster that ends by kill -9: `python killed_section.py WAREHOUSE STEP`.

pyspark cannot be imported in it.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from quotaflow.pipelines import config
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.feedback.runs import context
from quotaflow.pipelines.feedback.writing import exclusive_section
from tests.pipelines.feedback.fake_configs import DictConfigs, desired, file_leases, planned


@contextmanager
def open_cluster(_: Conf) -> Iterator[tuple[str, DictConfigs]]:
    """A cluster on which nothing is set."""
    yield "c1", DictConfigs()


def passed(step: str) -> None:
    """Die at the step of the command line."""
    if step == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Write one quota."""
    exclusive_section.open_cluster = open_cluster  # type: ignore[assignment]
    exclusive_section.open_leases = file_leases
    conf = config.load(overrides=[f"warehouse.path={sys.argv[1]}"])
    changes = planned(desired()).changes
    with exclusive_section.acquired(
        context.from_conf(conf).writes, print, on_step=passed
    ) as section:
        section.apply.run("p", changes)


if __name__ == "__main__":
    main()
