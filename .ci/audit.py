"""What pip-audit found, told honestly: vulnerable is 1, and not known is 2, never "nothing found".

pip-audit ends well also where no advisory could be had for a package; here that is not well.
Usage: pip-audit --format json ... 2>&1 | python audit.py CONSTRAINTS
"""

import json
import sys
from pathlib import Path
from typing import Any

VULNERABLE, UNKNOWN = 1, 2
_SHOWN = 5


def verdict(output: str, pinned: set[str]) -> tuple[int, list[str]]:
    """Exit code and lines, by all that pip-audit printed and the packages it was to look at."""
    told = next((line for line in output.splitlines() if line.startswith('{"dependencies"')), None)
    if told is None:
        last = (output.strip().splitlines() or ["nothing was printed"])[-1]
        return UNKNOWN, [f"not audited: the advisory service gave no answer: {last[:300]}"]
    dependencies: list[dict[str, Any]] = json.loads(told)["dependencies"]
    lines = [_line(of, each) for of in dependencies for each in of.get("vulns", ())]
    audited = {of["name"].lower().replace("_", "-") for of in dependencies if "vulns" in of}
    missed = sorted(pinned - audited)
    if missed:
        shown = ", ".join(missed[:_SHOWN]) + (" ..." if len(missed) > _SHOWN else "")
        lines.append(f"not audited: no advisories for {len(missed)} of {len(pinned)}: {shown}")
    if any("vulns" in of and of["vulns"] for of in dependencies):
        return VULNERABLE, lines
    return (UNKNOWN, lines) if missed else (0, [f"{len(pinned)} packages, no known vulnerability"])


def _line(of: dict[str, Any], found: dict[str, Any]) -> str:
    fixed = ", ".join(found.get("fix_versions", ())) or "no version yet"
    return f"vulnerable: {of['name']} {of['version']}: {found['id']}, mended in {fixed}"


def names(constraints: str) -> set[str]:
    """The packages a constraints file pins."""
    return {
        line.partition("==")[0].strip().lower().replace("_", "-")
        for line in constraints.splitlines()
        if "==" in line
    }


if __name__ == "__main__":
    code, told = verdict(sys.stdin.read(), names(Path(sys.argv[1]).read_text(encoding="utf-8")))
    sys.stdout.write("\n".join(told) + "\n")
    sys.exit(code)
