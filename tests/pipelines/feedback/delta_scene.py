"""Runs of apply on a made-up cluster, with a real journal in a folder."""

import resource
from collections.abc import Callable, Sequence

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.feedback.configs.change import Change
from quotaflow.pipelines.feedback.ledger import journal
from quotaflow.pipelines.feedback.ledger.ledger import Ledger
from quotaflow.pipelines.feedback.runs import context
from quotaflow.pipelines.feedback.writing import exclusive_section
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from .fake_configs import DictConfigs, desired, planned

Opened = Callable[[DictConfigs], None]
"""Makes these configs those of conf's cluster."""


def changes(*names: str) -> Sequence[Change]:
    rows = [desired(name) for name in names]
    return planned(*rows).changes


def apply(conf: Conf, *names: str, passed: Callable[[str], None] = lambda _: None) -> list[str]:
    """The step with which each change of these users' quotas ended."""
    with exclusive_section.acquired(
        context.from_conf(conf).writes, print, on_step=passed
    ) as section:
        return [outcome.step for outcome in section.apply.run("p", changes(*names))]


def ledger(conf: Conf) -> Ledger:
    return journal.read_ledger(open_reader(conf))


class Folder:
    """Where the journal of a conf is: it can be made to store nothing."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.lock = warehouse.folder("config_changes") / "_delta_log" / ".writer.lock"
        self.limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(self) -> None:
        """Let no file of this process grow."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, self.limits[1]))

    def block(self) -> None:
        """Put a folder where a writer opens a file. Rights would not stop root."""
        self.lock.unlink(missing_ok=True)
        self.lock.mkdir()

    def free(self) -> None:
        """Let it store again."""
        resource.setrlimit(resource.RLIMIT_FSIZE, self.limits)
        if self.lock.is_dir():
            self.lock.rmdir()
