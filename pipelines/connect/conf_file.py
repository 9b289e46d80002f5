"""conf.yaml as init writes it: discovered and given values, and other keys as comments."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import yaml

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.connect.cluster_discovery import Discovery

_LOGIN = """\
    # security.protocol: SASL_SSL
    # sasl.mechanism: SCRAM-SHA-512
    # sasl.username: quotaflow
    # sasl.password: env:QUOTAFLOW_KAFKA_PASSWORD   # or secret:scope/key on Databricks
    # or a token, Kerberos, IAM, a certificate: docs/connect.md, "Which logins work"
    # ssl.truststore.type: PEM                      # or JKS, PKCS12
    # ssl.truststore.location: /etc/kafka/ca.pem
"""
_WAYS_IN = {
    "request_log_topic": "lines of the brokers' request log",
    "receiver_topic": "what clients push, by the brokers' telemetry receiver",
    "otlp_topic": "or that of a Collector's Kafka exporter",
}
_REST = """\
# warehouse:                    # where the tables are; --set warehouse.path=FOLDER does it too
#   path: ~/.quotaflow/warehouse
# producer_ids:                 # quotas for KIP-936, which stock Kafka does not have
#   default_quota_per_s: null   # ids per second, user and broker; null: unlimited
#   quotas: {}
# alerts:                       # who quotaflow notify sends events to; addresses by reference
#   receivers: [{name: chat, format: slack, url: "env:QUOTAFLOW_WEBHOOK"}]
# plan:                         # principals that no plan changes, beside the default ones
#   excluded_principals: []
"""


def text(conf: Conf, discovery: Discovery, now: datetime) -> str:
    """The text of a conf with the values set in `conf` that pins the discovered cluster."""
    return "".join(_lines(conf, discovery, now))


def _lines(conf: Conf, discovery: Discovery, now: datetime) -> Iterator[str]:
    yield f"# Made by quotaflow init at {now:%Y-%m-%d %H:%M} UTC. Secrets are here by reference\n"
    yield "# only. What is commented out is the default; unknown keys are refused.\n"
    yield "kafka:\n"
    cluster_id = conf.kafka.cluster_id or discovery.cluster_id
    if cluster_id is None:
        yield "  # cluster_id: ...           # offline: set the id of the cluster of this conf\n"
    else:
        yield "  # A broker of another cluster is refused.\n"
        yield _yaml({"cluster_id": cluster_id}, 2)
    if conf.kafka.principal is not None:
        yield _yaml({"principal": conf.kafka.principal}, 2)
    yield "  properties:                   # any property of a Kafka client\n"
    yield _yaml(conf.kafka.properties, 4)
    if "security.protocol" not in conf.kafka.properties:
        yield _LOGIN
    yield "ingest:                         # a topic that is null is not read\n"
    for key, meaning in _WAYS_IN.items():
        yield f"  # {meaning}\n{_yaml({key: getattr(conf.ingest, key)}, 2)}"
    if not conf.ingest.sampling:
        yield "  # sampling: {PRODUCE: 0.1}    # the share of an API's lines that is kept\n"
    yield from _raft_listeners(conf, discovery)
    yield from _others(conf)
    yield from _racks(conf, discovery)
    yield _REST


def _raft_listeners(conf: Conf, discovery: Discovery) -> Iterator[str]:
    """Those of the brokers, where they are not the default and no others were given."""
    if "controller_listeners" in conf.ingest.model_fields_set or discovery.cluster_id is None:
        return
    if discovery.raft_listeners is None:
        yield "  # controller.listener.names of the brokers, which this login could not read:\n"
        yield f"  # controller_listeners: [{', '.join(conf.ingest.controller_listeners)}]\n"
    elif discovery.raft_listeners - {*conf.ingest.controller_listeners}:
        yield "  # controller.listener.names of the brokers: raft requests there are left out\n"
        yield _yaml({"controller_listeners": sorted(discovery.raft_listeners)}, 2)


def _others(conf: Conf) -> Iterator[str]:
    """The other values that were set."""
    given = conf.model_dump(mode="json", exclude_unset=True)
    ingest = {k: v for k, v in given.pop("ingest", {}).items() if k not in _WAYS_IN}
    if ingest:
        yield _yaml(ingest, 2)
    given.pop("kafka", None)
    if given:
        yield _yaml(given, 0)


def _racks(conf: Conf, discovery: Discovery) -> Iterator[str]:
    racks = sorted({rack for rack in discovery.racks.values() if rack})
    if racks and not conf.racks:
        yield f"# racks:                        # of clients that declare none; brokers': {racks}\n"
        yield f"#   10.1.0.0/16: {racks[0]!r}\n"  # a name may contain a line end


def _yaml(values: dict[str, Any], indent: int) -> str:
    lines = yaml.safe_dump(values, sort_keys=False, width=1_000).splitlines()
    return "".join(f"{' ' * indent}{line}\n" for line in lines)
