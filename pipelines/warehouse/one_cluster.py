"""Which cluster a question is about, where tables may hold several."""

from collections.abc import Iterable

from quotaflow.pipelines.errors import ConfigError


def one_cluster(cluster_ids: Iterable[str], pinned: str | None) -> str | None:
    """The cluster that conf pins, else the only one that is known; None where none is.

    Raises ConfigError where several are known and conf pins none.
    """
    found = sorted(cluster_ids)
    if pinned is None and len(found) > 1:
        raise ConfigError(
            f"the tables hold clusters {', '.join(found)}: name one with --set kafka.cluster_id=ID"
        )
    return pinned or next(iter(found), None)
