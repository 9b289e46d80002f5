"""The results that heads of schemas/results declare, for one conf."""

import re
from dataclasses import replace

from quotaflow.pipelines.compute import texts
from quotaflow.pipelines.compute.result import LookupTable, Result, SplitBy, Unnamed
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.results.inputs import PARAMETERS, RELATIONS, WALKS
from quotaflow.schemas.result_head import ResultHead, Time
from quotaflow.schemas.tables.catalog import RESULTS, TABLES
from quotaflow.udfs.engine.rule import Rule

_PARAMETER = re.compile(r"\$(\w+)")


def results_of(facts: str, conf: Conf) -> tuple[Result, ...]:
    """The results of these facts. Raises ConfigError."""
    return tuple(result_of(name, conf) for name, head in RESULTS.items() if head.facts == facts)


def result_of(name: str, conf: Conf | None = None) -> Result:
    """One result, by the name of its file; with the defaults of conf if none is given.

    Raises ConfigError.
    """
    conf = conf or Conf()
    head = RESULTS[name]
    times = {
        "bucket_s": _seconds(head.bucket, conf),
        "lookback_s": _seconds(head.lookback, conf),
        "carry_s": _seconds(head.carry, conf),
    }
    parameter = _PARAMETER.fullmatch(head.relevant)
    return Result(
        table=TABLES[head.fills],
        rule=_rule(head, conf, times),
        facts=TABLES[head.facts],
        **times,
        relevant=str(PARAMETERS[parameter[1]](conf)) if parameter else head.relevant,
        carry_key=head.carry_key,
        warm_up_s=_seconds(head.warm_up, conf),
        runs_forward=head.runs_forward,
        lookups=tuple(LookupTable(TABLES[each], *how) for each, how in head.lookups.items()),
        lookahead_s=_seconds(head.lookahead, conf),
        split=SplitBy(head.split_by, head.split_or_by, head.split_shared),
        scope=head.scope,
        unnamed=tuple(Unnamed(TABLES[each], *how) for each, how in head.unnamed.items()),
        rolls_up=head.rolls_up,
    )


def _rule(head: ResultHead, conf: Conf, times: dict[str, int]) -> Rule:
    named = texts.words(head.sql)
    walks = tuple(make(conf) for name, make in WALKS.items() if name in named)
    rule = texts.rule(head.name, head.sql, TABLES[head.fills], walks)
    sql = "\n".join(texts.texts_of(rule))
    words, parameters = texts.words(sql), set(_PARAMETER.findall(sql))
    return replace(
        rule,
        rows={name: make(conf) for name, make in RELATIONS.items() if name in words},
        parameters={
            **{name: value for name, value in times.items() if name in parameters},
            **{name: make(conf) for name, make in PARAMETERS.items() if name in parameters},
        },
    )


def _seconds(time: Time, conf: Conf) -> int:
    return time if isinstance(time, int) else int(str(PARAMETERS[time](conf)))
