"""Dynamic configs of a real cluster, as quotaflow reads and restores them."""

from collections.abc import Iterator
from contextlib import contextmanager

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.feedback.configs.live_configs import LiveConfigs
from quotaflow.pipelines.feedback.ledger.outcome import Outcome
from quotaflow.pipelines.feedback.planning.restore_plan import RestorePlan
from quotaflow.pipelines.feedback.runs import context, restore_run
from quotaflow.pipelines.feedback.writing import exclusive_section


@contextmanager
def opened(conf: Conf) -> Iterator[LiveConfigs]:
    """Those of conf's cluster."""
    with exclusive_section.open_cluster(context.from_conf(conf).writes) as (_, configs):
        yield configs


def restored(conf: Conf, *, everything: bool = True) -> tuple[RestorePlan, list[Outcome]]:
    """Restore all that was written, or what is due: what was planned, and how each change ended."""
    return restore_run.restore_configs(
        context.from_conf(conf), lambda _: None, everything=everything
    )
