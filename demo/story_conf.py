"""Conf of the demo: what its short life and its few rows need."""

import os
from pathlib import Path

from quotaflow.demo import late_clients
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.jvm import BROKER_HEAP_MB
from quotaflow.demo.past import week as past_week
from quotaflow.demo.traffic_ids import PROCESSOR_ADDRESS
from quotaflow.pipelines import config
from quotaflow.pipelines.config import (
    AlertsSection,
    PlanSection,
    PricesSection,
    QuotasSection,
)
from quotaflow.pipelines.config.alerts import AlertRule
from quotaflow.pipelines.spark import session

_JAAS = "QUOTAFLOW_DEMO_JAAS"
_ALERTS = AlertsSection(
    rules=[
        # dave's quota holds his producer back for longer than this at once.
        AlertRule(
            name="throttled",
            metric="org.apache.kafka.producer.produce.throttle.time.avg",
            above=100.0,
            for_s=3,
            stale_s=60,
        ),
        AlertRule(
            name="idle",
            metric=late_clients.IDLE_METRIC,
            below=0.5,
            clear=0.5,
            for_s=3,
            stale_s=3_600,
            subscribe_interval_s=1,
        ),
    ]
)
_PLAN = PlanSection(offence_period_s=120, address_history_s=20)
"""What lets a plan act after a minute of traffic: by default it waits half an hour for advice to
work, and knows a week of who uses an address."""

_STALE_THROTTLE_S = 20
"""The first and the last snapshot lie further apart, so that they show what nobody needs."""

# A batch without new rows only drops state that is too old for use: no demo lasts so long.
_SPARK = session.SHORT_LIVED | {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}


def for_cluster(cluster: LocalCluster, warehouse: Path) -> config.Conf:
    """The default conf for a demo cluster; its login is passed by the environment."""
    properties = cluster.client_properties("admin")
    os.environ[_JAAS] = properties.pop("sasl.jaas.config")
    properties["sasl.jaas.config"] = f"env:{_JAAS}"
    return config.load().model_copy(
        update={
            "kafka": config.KafkaSection(properties=properties, cluster_id=cluster.cluster_id),
            "warehouse": config.WarehouseSection(path=str(warehouse)),
            "alerts": _ALERTS,
            "plan": _PLAN,
            # The quota of dave is too small for his exports; a raise is due a day after it was set.
            "quotas": QuotasSection(advised_users=["dave"]),
            # No broker reports its heap. A slow machine makes few ids: a small share shows them.
            # Nobody exceeds a quota unless conf has one.
            "producer_ids": config.ProducerIdsSection(
                broker_heap_bytes=BROKER_HEAP_MB * 2**20,
                max_heap_share=0.02,
                default_quota_per_s=1.0,
                # Loopback, as all clients of the demo: no plan limits such an address by itself.
                limited_addresses=[PROCESSOR_ADDRESS],
            ),
            # As if this machine, and so every client that declares no rack, were in the first rack.
            "racks": {"127.0.0.1/32": "az-a"} | past_week.RACKS,
            "prices": PricesSection(cross_rack_per_gib=0.02, stored_per_gib_month=0.1),
            "replication": config.ReplicationSection(stale_throttle_s=_STALE_THROTTLE_S),
            "spark": config.SparkSection(conf=_SPARK),
        }
    )
