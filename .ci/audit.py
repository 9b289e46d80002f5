"""Reports what pip-audit found: exit code 1 is vulnerable, 2 is unknown, never "nothing found".

pip-audit also succeeds where it got no advisory for a package. Here that is a failure.
Usage: pip-audit --format json ... 2>&1 | python audit.py CONSTRAINTS
"""

import json
import sys
from pathlib import Path
from typing import Any

VULNERABLE, UNKNOWN = 1, 2
_SHOWN = 5


def verdict(output: str, pinned: set[str]) -> tuple[int, list[str]]:
    """Exit code and lines, from all that pip-audit printed and the packages it was to check."""
    printed = output.strip().splitlines()
    report = next((line for line in printed if line.startswith('{"dependencies"')), None)
    if report is None:
        last = (printed or ["nothing was printed"])[-1]
        return UNKNOWN, [f"not audited: the advisory service gave no answer: {last[:300]}"]
    packages: list[dict[str, Any]] = json.loads(report)["dependencies"]
    lines = [_line(package, vuln) for package in packages for vuln in package.get("vulns", ())]
    audited = {p["name"].lower().replace("_", "-") for p in packages if "vulns" in p}
    missed = sorted(pinned - audited)
    if missed:
        shown = ", ".join(missed[:_SHOWN]) + (" ..." if len(missed) > _SHOWN else "")
        lines.append(f"not audited: no advisories for {len(missed)} of {len(pinned)}: {shown}")
    if any(package.get("vulns") for package in packages):
        return VULNERABLE, lines
    return (UNKNOWN, lines) if missed else (0, [f"{len(pinned)} packages, no known vulnerability"])


def _line(package: dict[str, Any], vulnerability: dict[str, Any]) -> str:
    fixed = ", ".join(vulnerability.get("fix_versions", ())) or "no version yet"
    name, version = package["name"], package["version"]
    return f"vulnerable: {name} {version}: {vulnerability['id']}, fixed in {fixed}"


def names(constraints: str) -> set[str]:
    """The packages a constraints file pins."""
    return {
        line.partition("==")[0].strip().lower().replace("_", "-")
        for line in constraints.splitlines()
        if "==" in line
    }


if __name__ == "__main__":
    code, report = verdict(sys.stdin.read(), names(Path(sys.argv[1]).read_text(encoding="utf-8")))
    sys.stdout.write("\n".join(report) + "\n")
    sys.exit(code)
