"""What an extra needs beside requirements.txt, with sums.

    python .ci/release/further.py requirements.txt WHOLE > requirements-iam.txt

WHOLE is the same lock with one extra more: what it adds, or has in another version, is printed.
"""

import re
import sys
from pathlib import Path


def blocks(lock: str) -> dict[str, str]:
    """Each package with its sums, by name and version."""
    pairs = re.findall(r"^([\w.-]+==\S+)((?:.*\\\n)*.*\n)", lock, re.M)
    return {name: name + rest for name, rest in pairs}


def further(lock: str, whole: str) -> str:
    """The blocks of `whole` that `lock` lacks, under the head that `make lock` writes."""
    head = "".join(line + "\n" for line in whole.splitlines() if line.startswith("#"))
    listed = blocks(lock)
    return head + "".join(text for name, text in blocks(whole).items() if name not in listed)


if __name__ == "__main__":
    texts = [Path(name).read_text(encoding="utf-8") for name in sys.argv[1:]]
    sys.stdout.write(further(*texts))
