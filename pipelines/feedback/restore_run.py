"""`quotaflow restore`: what we wrote and hold too long, given back to what stood before us."""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.feedback import exclusive_section, other_writers, planning, restore_plan
from quotaflow.pipelines.feedback.change_writer import Configs, ends
from quotaflow.pipelines.feedback.desired_configs import Entity
from quotaflow.pipelines.feedback.ledger import YIELDED, Ledger, Record
from quotaflow.pipelines.feedback.other_writers import Named
from quotaflow.pipelines.feedback.outcome import Outcome
from quotaflow.pipelines.feedback.restore_plan import Key, Returns, Setter, Yielded
from quotaflow.pipelines.kafka.cluster_state import UnansweredError
from quotaflow.schemas.configs import CLIENT_METRICS
from quotaflow.schemas.tables.config_alterations import CONFIG_ALTERATIONS

Said = Callable[[str], None]
PLAN_ID = "restore"


def due(conf: Conf, now: datetime, *, everything: bool = False) -> Returns:
    """What would be given back now; nothing is written."""
    with exclusive_section.cluster(conf) as (cluster_id, configs):
        ledger = exclusive_section.ours(planning.ledger(conf), cluster_id)
        # Each turn at writing begins with these ends.
        ledger = ledger.ended(ends(configs, ledger, lambda: now))
        return returns(conf, ledger, configs, now, everything=everything)


def restored(
    conf: Conf,
    report: Said,
    stopped: Callable[[], str | None] = lambda: None,
    passed: Said = lambda _: None,
    *,
    everything: bool = False,
    keys: Collection[Key] | None = None,
) -> tuple[Returns, list[Outcome]]:
    """Give back what is due, or everything, or these `keys` alone; how each change ended."""
    with exclusive_section.taken(conf, report, stopped, passed) as taken:
        apply = taken.apply
        ledger = taken.ledger if keys is None else taken.ledger.only(keys)
        everything = everything or keys is not None
        found = returns(conf, ledger, apply.configs, datetime.now(UTC), everything=everything)
        apply.journal.add([_yielded(each, apply.run_id, n) for n, each in enumerate(found.yielded)])
        passed("yielded")
        return found, apply.run(PLAN_ID, found.changes) if found.changes else []


def returns(
    conf: Conf, ledger: Ledger, configs: Configs, now: datetime, *, everything: bool
) -> Returns:
    """What of a ledger is to be given back, on what the cluster has now.

    The guards of a plan hold here too. Only how many entities change at once is up to whoever asks
    for `everything`.
    """
    owned, unknown = restore_plan.known(restore_plan.due(ledger, now, everything=everything))
    actual: dict[Entity, Mapping[str, str]] = {}
    for entity in dict.fromkeys(key[0] for key in owned):
        with suppress(UnansweredError):
            actual[entity] = configs.read(entity)
    # A broker's clock may be ahead of ours: our own write, by another login of ours, must not count
    # as somebody else's later one.
    skew = timedelta(seconds=conf.ingest.max_clock_skew_s)
    since = {key: of.since + skew for key, of in owned.items()}
    named = {key: {entry: at + skew for entry, at in of.named.items()} for key, of in owned.items()}
    by = setters(conf, since, named)
    connection = planning.connection(conf)
    found = restore_plan.returns(owned, actual, by, connection)
    found = replace(found, refused=unknown)
    found = restore_plan.permitted(found, planning.bounds(conf), connection)
    found = _spared(conf, found, actual)
    if everything or not found.changes:
        return found
    return restore_plan.stepwise(found, planning.bounds_to_give_back(conf))


def _spared(conf: Conf, found: Returns, actual: restore_plan.Actual) -> Returns:
    """Without what would harm a live client; where no table tells of clients, all of it."""
    entities = [c.entity for c in found.changes if c.entity.entity_type == CLIENT_METRICS]
    if not entities or not planning.knows_clients(conf):
        return found
    check = planning.preflight(conf, entities[0].cluster_id)
    # The last snapshot may be older than what we wrote.
    ours = {entity.entity_name or "": actual[entity] for entity in entities}
    return restore_plan.spared(found, replace(check, standing={**check.standing, **ours}))


def setters(
    conf: Conf, since: Mapping[Key, datetime], named: Named | None = None
) -> dict[Key, Setter]:
    """Who else altered these configs later than that, and named entries of lists since we did.

    Nobody where no request log was ingested.
    """
    if not planning.is_made(conf, CONFIG_ALTERATIONS.name):
        return {}
    own = conf.kafka.own_principal
    return other_writers.setters(partial(planning.rows, conf), since, own, named)


def _yielded(each: Yielded, run_id: str, number: int) -> Record:
    record = each.owned.record
    return replace(
        record,
        event_time=datetime.now(UTC),
        run_id=run_id,
        number=number,
        step=YIELDED,
        detail=each.why,
    )
