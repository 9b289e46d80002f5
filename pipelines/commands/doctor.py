"""The command doctor: what is missing here, and how to fix it."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from quotaflow.pipelines.commands import options
from quotaflow.pipelines.doctor import finding
from quotaflow.pipelines.doctor.doctor import examine
from quotaflow.pipelines.terminal import output, progress, values
from quotaflow.pipelines.terminal.layout import Layout

if TYPE_CHECKING:
    from quotaflow.pipelines.doctor.finding import Finding

_NAMES = ["state", "subject", "observed", "remedy"]


def doctor(
    *,
    conf: options.ConfOptions,
    layout: Layout,
) -> None:
    """Check what is missing, and say how to fix it.

    Checks this machine, the conf, the warehouse and the cluster, and only reads. Exit code 1 if a
    finding is bad, 2 if the conf itself is invalid.

    Example: quotaflow doctor
    """
    settings = conf.of_tables()
    findings: list[dict[str, str]] = []
    checks = examine(settings)
    while (each := _next(checks)) is not None:
        findings.append(asdict(each))
        if layout == Layout():
            output.lines(_text(findings[-1]))
    if layout != Layout():
        output.write(findings, _NAMES, layout)
    if any(row["state"] == finding.BAD for row in findings):
        raise typer.Exit(1)


def _next(checks: "Iterator[Finding]") -> "Finding | None":
    with progress.shown("checking; a broker that does not answer takes up to 20 s"):
        return next(checks, None)


def _text(finding: dict[str, str]) -> list[str]:
    remedy = [f"{'':11}-> {finding['remedy']}"] if finding["remedy"] else []
    lines = [f"{finding['state']:<10} {finding['subject']}: {finding['observed']}", *remedy]
    return [values.visible(line) for line in lines]
