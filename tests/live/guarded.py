"""A cluster of one broker that allows nobody anything until an ACL says so, and logins by role."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)

from quotaflow.demo import broker_config
from quotaflow.demo.broker_config import LEASE_TOPIC, REQUEST_LOG_TOPIC, TELEMETRY_TOPIC
from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines import config
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.spark import session
from quotaflow.schemas import acls
from quotaflow.schemas.acls import Acl

from .readers import await_so

TOPICS: Mapping[str, str | None] = {
    acls.REQUEST_LOG: REQUEST_LOG_TOPIC,
    acls.RECEIVER: TELEMETRY_TOPIC,
    acls.OTLP: None,
    acls.LEASES: LEASE_TOPIC,
}
USERS = {
    **{"shipper": "shipper", "receiver": "alice", "run": "carol", "snapshot": "dave"},
    **{"apply": "erin", "capture": "frank", "troubleshoot": "grace"},
}
"""Role -> the demo cluster's user that plays it."""


@contextmanager
def guarded(folder: Path) -> Iterator[LocalCluster]:
    """The cluster, while it runs."""
    closed = broker_config._acls() | {"allow.everyone.if.no.acl.found": "false"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(broker_config, "_acls", lambda: closed)
        with LocalCluster(folder, nodes=1) as cluster:
            yield cluster


def conf_of(cluster: LocalCluster, user: str, warehouse: Path, patch: pytest.MonkeyPatch) -> Conf:
    """Conf that logs in as a user; the password by reference to an environment variable."""
    properties = cluster.librdkafka_properties(user)
    patch.setenv(f"PASSWORD_OF_{user.upper()}", properties.pop("sasl.password"))
    given = properties | {"sasl.password": f"env:PASSWORD_OF_{user.upper()}"}
    pairs = [f"kafka.properties.{key}={value}" for key, value in given.items()]
    conf = config.load(overrides=[*pairs, f"warehouse.path={warehouse}"])
    return conf.model_copy(update={"spark": config.SparkSection(conf=session.SHORT_LIVED)})


def grant(cluster: LocalCluster, user: str, rights: Iterable[Acl]) -> None:
    """Exactly these rights and no others, and wait until the broker knows."""
    acls = [_acl(user, right) for right in rights]
    of_user = acls_of(f"User:{user}")
    with cluster.admin() as admin:
        admin.delete_acls([of_user])
        if acls:
            admin.create_acls(acls)
        await_so(lambda: len(admin.describe_acls(of_user)[0]) == len(acls))


def acls_of(principal: str | None) -> ACLFilter:
    """All ACLs of a principal, or of everybody."""
    anything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
    return ACLFilter(principal, "*", ACLOperation.ANY, ACLPermissionType.ANY, anything)


def operation_of(right: Acl) -> ACLOperation:
    """What kafka-python calls the operation of a right."""
    names = {"DescribeConfigs": "DESCRIBE_CONFIGS", "AlterConfigs": "ALTER_CONFIGS"}
    return ACLOperation[names.get(right.operation, right.operation.upper())]


def _acl(user: str, right: Acl) -> ACL:
    kind = ACLResourcePatternType.PREFIXED if right.is_prefix else ACLResourcePatternType.LITERAL
    resource = ResourceType[right.resource_type.upper().replace("-", "_")]
    pattern = ResourcePattern(resource, right.name, kind)
    return ACL(f"User:{user}", "*", operation_of(right), ACLPermissionType.ALLOW, pattern)
