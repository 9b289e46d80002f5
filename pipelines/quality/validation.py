"""Validates frames with great-expectations: the only module that imports it."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quotaflow.pipelines import extras
from quotaflow.pipelines.errors import MissingToolError
from quotaflow.pipelines.quality.suites import Check
from quotaflow.pipelines.quality.wording import expected

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SITE = "quotaflow"
_DETAIL_CHARS = 500
# Counts alone: rows hold names of clients, which belong on no page.
_COUNTED = {"result_format": "BASIC", "partial_unexpected_count": 0}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether rows pass a check, and how many fail; None: they were not counted."""

    check: Check
    success: bool
    failed_rows: int | None
    details: str | None


def great_expectations() -> Any:
    """The package. Raises MissingToolError if the extra is not installed."""
    os.environ["GX_ANALYTICS_ENABLED"] = "False"
    try:
        import great_expectations as gx  # noqa: PLC0415  an extra, and it takes seconds
    except ModuleNotFoundError as error:
        install = extras.install("quality")
        raise MissingToolError(f"a check needs {error.name}: {install}") from error
    return gx


class Validation:
    """A run of great-expectations: validates frames.

    Results stay in memory, nothing is cached, and nothing is sent anywhere. It uses the running
    Spark session, and would start one if there were none.
    """

    def __init__(self) -> None:
        self._gx = great_expectations()
        self._context: Any = self._gx.get_context(mode="ephemeral")
        self._context.variables.progress_bars = {"globally": False}
        self._source = self._context.data_sources.add_spark(_SITE, persist=False)

    def verdicts(self, suite: str, checks: Sequence[Check], frame: "DataFrame") -> list[Verdict]:
        """The verdict of each check of a suite on these rows."""
        asset = self._source.add_dataframe_asset(suite)
        definition = self._gx.ValidationDefinition(
            name=suite,
            data=asset.add_batch_definition_whole_dataframe(suite),
            suite=self._context.suites.add(self._suite(suite, checks)),
        )
        rows = {"dataframe": frame}
        results = self._context.validation_definitions.add(definition).run(
            batch_parameters=rows, result_format="BOOLEAN_ONLY"
        )
        by_name = _by_name(results)
        failed = [check for check in checks if not by_name[check.name].success]
        if not failed:
            return [Verdict(check, True, 0, expected(check)) for check in checks]
        batch = definition.data.get_batch(rows)
        counted = _by_name(batch.validate(self._suite(suite, failed), result_format=_COUNTED))
        return [_verdict(check, counted.get(check.name)) for check in checks]

    def _suite(self, name: str, checks: Iterable[Check]) -> Any:
        return self._gx.ExpectationSuite(
            name, expectations=[check.configuration for check in checks]
        )


def _by_name(results: Any) -> dict[str, Any]:
    return {result.expectation_config.meta["name"]: result for result in results.results}


def _verdict(check: Check, failed: Any) -> Verdict:
    if failed is None:
        return Verdict(check, True, 0, expected(check))
    error = _error(failed.exception_info)
    if error is not None:
        return Verdict(check, False, None, f"it could not be checked: {error}"[:_DETAIL_CHARS])
    # SQL has an observed value, a check of columns a count.
    rows = failed.result.get("unexpected_count", failed.result.get("observed_value"))
    return Verdict(check, False, rows, expected(check))


def _error(exception_info: Mapping[str, Any]) -> str | None:
    """The first line of the exception: there is one of the check, or one of each metric."""
    each = (
        [exception_info] if "raised_exception" in exception_info else list(exception_info.values())
    )
    raised = [str(info["exception_message"]) for info in each if info["raised_exception"]]
    return raised[0].strip().splitlines()[0] if raised else None
