"""Reference for `with_limits` of `pipelines/results/shared/macros.sql`: a client's effective quota.

Kafka's ClientQuotaManager (KIP-13, KIP-55). Each kind of quota (producer_byte_rate and so on) is
resolved on its own: pass quotas of one kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from quotaflow.udfs.rules.quota import ANY, DEFAULT, LEVELS, NAMED, QuotaEntity


def entity(level: tuple[str, str], user: str, client_id: str) -> QuotaEntity:
    """An entity of a level, of these names where it has any."""
    of_user, of_client_id = level
    return QuotaEntity(
        user=user if of_user == NAMED else None,
        is_default_user=of_user == DEFAULT,
        client_id=client_id if of_client_id == NAMED else None,
        is_default_client_id=of_client_id == DEFAULT,
    )


@dataclass(frozen=True, slots=True)
class EffectiveQuota:
    """An effective quota: its level (1 to 8), its value, and the bucket it is counted on.

    All clients with the same `quota_bucket_user` and `quota_bucket_client_id` at a broker share
    the quota. None means all users, or all client ids.
    """

    level: int
    quota: float
    quota_bucket_user: str | None
    quota_bucket_client_id: str | None


def effective(
    quotas: Mapping[QuotaEntity, float], user: str, client_id: str
) -> EffectiveQuota | None:
    """The effective quota of a client, by its user name and client id; None: unlimited.

    A client without a client id ("") has only quotas of users: to Kafka an empty name is none.
    """
    for level, (of_user, of_client_id) in enumerate(LEVELS, 1):
        if not client_id and of_client_id != ANY:
            continue
        quota = quotas.get(entity((of_user, of_client_id), user, client_id))
        if quota is not None:
            return EffectiveQuota(
                level,
                quota,
                quota_bucket_user=None if of_user == ANY else user,
                quota_bucket_client_id=None if of_client_id == ANY else client_id,
            )
    return None
