"""Words the codes of views: a code and the columns that are its evidence make one sentence.

Views have no sentences. Code that shows it to people (plan, report and other commands) words it
here by the templates of reasons.yaml, so that each sentence exists once. The page of
`pipelines/reference/reasons.py` lists the codes.

Pure. Evidence has names that clients chose: they are cut, and what does not print is escaped. A
code of another version, which has no words here, is shown as it is.
"""

from functools import partial

from quotaflow.pipelines.reasons.wording import (
    MAX_NAME_CHARS,
    Place,
    Row,
    Wording,
    Wordings,
    accusation,
    cure,
    cut,
    meaning,
    name,
    rendered,
    text_of_code,
    with_signals,
    worded,
    wordings,
    wordings_of,
)
from quotaflow.pipelines.terminal import texts

__all__ = [
    "COST",
    "MAX_NAME_CHARS",
    "SURE",
    "Wording",
    "Wordings",
    "accused_burst",
    "blocked_reason",
    "burst",
    "cure",
    "diagnosis",
    "diagnosis_step",
    "fetch_step",
    "how_sure",
    "incident",
    "lag_cause",
    "lag_step",
    "meaning",
    "producer_rack_step",
    "read_step",
    "reason",
    "rebalance_trigger",
    "recommendation",
    "remote_read_step",
    "replica_step",
    "symptom",
    "telemetry_step",
    "text_of_code",
    "throttle_fault",
    "throttle_step",
    "trace",
    "trade_off",
    "wordings",
]

COST = "cost"
"""The symptom of bytes that cost without need: nobody suffers."""
SURE = "sure"
_HOW_SURE = ((0.9, SURE), (0.6, "likely"), (0.0, "possible"))
"""Words for a confidence from a bound on: a fixed number of a rule is no probability."""
_MAX_NAMES = 3

burst = partial(worded, ("producer_id_bursts", "cause"))
"""The numbers that show the cause of a burst: a row of producer_id_bursts or _advice."""
recommendation = partial(worded, ("producer_id_advice", "recommended_by"))
"""Which number of a row of producer_id_advice its recommended rate comes from."""
trace = partial(worded, ("other_config_managers", "evidence_code"))
"""What shows that another program manages the cluster: a row of other_config_managers."""
fetch_step = partial(worded, ("fetch_advice", "advice"))
remote_read_step = partial(worded, ("remote_read_advice", "advice"))
"""What to do about a row of this view."""
telemetry_step = partial(worded, ("clients_without_telemetry", "reason"))
"""What a row of clients_without_telemetry says, and what makes the client push."""
throttle_fault = partial(worded, ("throttle_checks", "finding"))
"""What is wrong with a throttle: a row of throttle_checks."""
rebalance_trigger = partial(worded, ("rebalances", "trigger"))
"""What caused a row of rebalances. What clients name is no proof of who is guilty."""


def symptom(row: Row) -> str:
    """What a row of diagnoses suffers from, in one sentence; it has its signals as columns."""
    return worded(("diagnoses", "symptom"), row)


def incident(row: Row) -> str:
    """Who suffers from what, and why, without a full stop: a row of incidents."""
    shown = texts.names(row["names"][:_MAX_NAMES])
    more = row["subjects"] - _MAX_NAMES
    cells = {
        "names": f"{shown} and {more} more" if more > 0 else shown,
        "origin": None if row["origin"] is None else texts.listed(row["origin"]),
    }
    return worded(("incidents", "symptom"), {**row, **cells})


def diagnosis(row: Row) -> str:
    """The cause of a row of diagnoses, without a full stop; of a move its symptom says it."""
    if row["symptom"] == "lag":
        return _lag_cause(row)
    if row["symptom"] == "move_stalled":
        return ""
    if row["symptom"] == COST:
        return text_of_code((row["advice_table"], "advice"), row["cause"])
    return worded(_of_cause(row), row)


def _of_cause(row: Row) -> Place:
    is_client = row["symptom"] in {"slow", "failing"}
    return "client_diagnoses" if is_client else "cluster_symptoms", "cause"


def diagnosis_step(row: Row) -> str | None:
    """What to do about a cause of a row of diagnoses; None if nothing can be said."""
    if row["symptom"] == "lag":
        return lag_step(row)
    if row["symptom"] == COST:
        return worded((row["advice_table"], "advice"), row)
    is_move = row["symptom"] == "move_stalled"
    place = ("diagnoses", "symptom") if is_move else _of_cause(row)
    return _step(place, row)


def how_sure(confidence: float | None) -> str:
    """How sure a cause is, in a word; empty if the cause is not known."""
    if confidence is None:
        return ""
    return next(word for bound, word in _HOW_SURE if confidence >= bound)


def throttle_step(row: Row) -> str | None:
    """What ends the fault of a row of throttle_checks; None for a code of another version."""
    return _step(("throttle_checks", "finding"), row)


def _step(place: tuple[str, str], row: Row) -> str | None:
    """The cure of the code that a row has in a table and column; None without one."""
    wording = wordings_of(place).by_code.get(row[place[1]])
    return None if wording is None or wording.cure is None else rendered(wording.cure, row)


def lag_step(row: Row) -> str:
    """What to do about a row of why_groups_lag."""
    cells = {"open_partition": None, "start_offset": None} | dict(with_signals(row))
    return worded(("why_groups_lag", "cause"), cells)


def _of_topic(place: Place, row: Row) -> str:
    """The sentence with the id of the topic in place of a name that nothing has yet."""
    return worded(place, {**row, "topic": row.get("topic") or row.get("unnamed_topic_id")})


replica_step = partial(_of_topic, ("replica_advice", "advice"))
producer_rack_step = partial(_of_topic, ("producer_rack_advice", "advice"))
"""What to do about a row of this view."""


def read_step(row: Row) -> str | None:
    """What to do about a row of read_problems; None if the rest heals by itself."""
    return None if row["advice"] is None else _of_topic(("read_problems", "advice"), row)


def reason(row: Row) -> str:
    """Why a row of desired_configs asks for its value."""
    return worded(("desired_configs", "reason_code"), with_signals(row))


def blocked_reason(row: Row) -> str | None:
    """Why a row of desired_configs must not be planned; None where it can be."""
    place = "desired_configs", "blocked_reason"
    return None if row["blocked_reason"] is None else worded(place, with_signals(row))


def trade_off(row: Row) -> str | None:
    """What gets worse with the change of a row of fetch_advice; None if nothing does."""
    return None if row["trade_off"] is None else worded(("fetch_advice", "trade_off"), row)


def accused_burst(row: Row) -> str:
    """Who took producer ids, the cause, and its cure: an accused row of producer_id_bursts."""
    # An address with many client ids has none before it.
    word = "" if str(row["source"]).startswith(" at ") else " as "
    return accusation(row, f"{{principal}}{word}{{source}}", "source_ids", "cause")


def lag_cause(row: Row) -> str:
    """The cause of a row of why_groups_lag and the numbers that it rests on, in one sentence."""
    sure = how_sure(row["confidence"])
    numbers = ", ".join(_signal(each["signal"], each["value"]) for each in row["evidence"] or ())
    rests = f"; evidence: {numbers}" if numbers else ""
    return f"{_lag_cause(row)}{f' ({sure})' if sure else ''}{rests}"


def _signal(signal: str, value: float) -> str:
    name_of_share = signal.removesuffix("_share")
    shown = texts.precise(value, 3) if name_of_share == signal else texts.share(value)
    return f"{cut(name_of_share).replace('_', ' ')} {shown}"


def _lag_cause(row: Row) -> str:
    why = text_of_code(("why_groups_lag", "cause"), row["cause"])
    # That a group without members is empty says nothing more.
    has_more = row["detail"] is not None and row["cause"] != "no_members"
    return f"{why} ({name(row, 'detail')})" if has_more else why
