"""What conf says of writes to the cluster: where, under which name, and what forbids them."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quotaflow.pipelines.config import (
    FeedbackSection,
    KafkaSection,
    SparkSection,
    WarehouseSection,
)
from quotaflow.pipelines.errors import FeedbackError
from quotaflow.pipelines.feedback.writing import stop_file

if TYPE_CHECKING:
    from quotaflow.pipelines.kafka.cluster_state import Send

REFUSED = "feedback.may_write is false, nothing is written to brokers: another conf does that"


@dataclass(frozen=True, slots=True)
class WriteConf:
    """The cluster that is written to, and the tables that record it.

    While `stop_file` is there nothing is written.
    """

    kafka: KafkaSection
    feedback: FeedbackSection
    warehouse: WarehouseSection
    spark: SparkSection
    stop_file: Path

    def check_permission(self) -> None:
        """Raise FeedbackError if nothing may be written to brokers, not even to restore."""
        if not self.feedback.may_write:
            raise FeedbackError(REFUSED)

    def check(self) -> None:
        """The same, and while the stop file is there."""
        self.check_permission()
        stop = stop_file.reason(self.stop_file)
        if stop is not None:
            raise FeedbackError(stop)

    def guarded(self, send: "Send") -> "Send":
        """`send` with a check of the permission before each request that alters the cluster."""
        from quotaflow.pipelines.kafka.cluster_state import (  # noqa: PLC0415  a plan has no client
            is_write,
        )

        def checked(request: Any, broker_id: int | None) -> Any:
            if is_write(request):
                self.check_permission()
            return send(request, broker_id)

        return checked
