"""All Delta tables by name, from the modules beside this one, which declare them."""

from quotaflow.schemas.table import Table
from quotaflow.schemas.tables import (
    answers,
    config_alterations,
    control,
    fetch_sizes,
    fetches,
    group_snapshots,
    groups,
    producer_ids,
    quality,
    quotas,
    read_faults,
    reassignments,
    remote_reads,
    replicas,
    requests,
    snapshots,
    telemetry,
    throttles,
    topology,
    traffic,
)

# In the order that lists of tables show: facts, results, answers, snapshots, control tables.
_MODULES = (
    requests,
    telemetry,
    fetches,
    producer_ids,
    traffic,
    quotas,
    replicas,
    read_faults,
    fetch_sizes,
    remote_reads,
    reassignments,
    config_alterations,
    throttles,
    groups,
    *answers.MODULES,
    topology,
    group_snapshots,
    snapshots,
    control,
    quality,
)

TABLES: dict[str, Table] = {
    table.name: table
    for module in _MODULES
    for table in vars(module).values()
    if isinstance(table, Table)
}

MODULE_OF_TABLE: dict[str, str] = {
    table.name: module.__name__.rpartition(".")[2]
    for module in _MODULES
    for table in vars(module).values()
    if isinstance(table, Table)
}
"""The name of the module that declares each table."""
