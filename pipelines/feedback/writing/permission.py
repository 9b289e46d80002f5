"""Whether conf lets anything be written to brokers at all (`feedback.may_write`)."""

from typing import Any

from quotaflow.pipelines.config import FeedbackSection
from quotaflow.pipelines.errors import FeedbackError
from quotaflow.pipelines.kafka.cluster_state import Send, is_write

REFUSED = "feedback.may_write is false, nothing is written to brokers: another conf does that"


def check(section: FeedbackSection) -> None:
    """Raise FeedbackError if nothing may be written to brokers, not even to restore."""
    if not section.may_write:
        raise FeedbackError(REFUSED)


def guarded(section: FeedbackSection, send: Send) -> Send:
    """The same for each request: one that would alter the cluster is not sent."""

    def checked(request: Any, broker_id: int | None) -> Any:
        if is_write(request):
            check(section)
        return send(request, broker_id)

    return checked
