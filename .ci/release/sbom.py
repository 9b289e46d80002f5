"""The bill of materials of a release, and the licences in it.

cyclonedx-bom writes what is installed in an environment, with licences. This adds the jars that
quotaflow fetches for Spark, and refuses a licence that nobody has looked at.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

CONF = Path(__file__).parents[2] / "conf"
# Of the jars: their groups are projects of the Apache Software Foundation, and Delta Lake.
_JAR_LICENCE = "Apache-2.0"
PERMITTED = re.compile(
    r"\b(apache|mit|bsd|isc|psf|python software foundation|mpl|mozilla|zlib|unlicense|public domain"
    r"|cc0|hpnd|cnri)\b",
    re.I,
)
"""Licences that permit use beside Apache-2.0. MPL 2.0 binds changes to its own files alone."""
_BY_LICENSE_FILE = {"protobuf": "BSD-3-Clause"}
"""Packages whose metadata names no licence, with that of their LICENSE file."""
Json = dict[str, Any]


def jar_components(jar_set: str) -> Iterator[Json]:
    """The jars of a set of conf, with their sums."""
    sums = {
        name: digest
        for digest, name in (
            line.split() for line in (CONF / f"{jar_set}.sha256").read_text("utf-8").splitlines()
        )
    }
    for each in ET.parse(CONF / f"{jar_set}.xml").getroot().iter("dependency"):  # noqa: S314  ours
        group, name, version = each.attrib["org"], each.attrib["name"], each.attrib["rev"]
        purl = f"pkg:maven/{group}/{name}@{version}"
        yield {
            "type": "library",
            "bom-ref": purl,
            "group": group,
            "name": name,
            "version": version,
            "purl": purl,
            "hashes": [{"alg": "SHA-256", "content": sums[f"{name}-{version}.jar"]}],
            "licenses": [{"license": {"id": _JAR_LICENCE}}],
        }


def with_hashes(components: Iterable[Json], hashes: Mapping[str, list[str]]) -> Iterator[Json]:
    """Components of packages with the sums of all their files, by requirements.txt."""
    for each in components:
        digests = hashes.get(normalized(each["name"]), [])
        listed = [{"alg": "SHA-256", "content": digest} for digest in digests]
        reference = {"type": "distribution", "url": each.get("purl", each["name"])}
        own = [reference | {"hashes": listed}] if listed else []
        yield each | {"externalReferences": [*each.get("externalReferences", []), *own]}


def pinned(text: str) -> dict[str, list[str]]:
    """The sums of each package of a requirements file."""
    hashes: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if match := re.match(r"([A-Za-z0-9._-]+)==", line):
            name = normalized(match[1])
            hashes[name] = []
        hashes.setdefault(name, []).extend(re.findall(r"--hash=sha256:([0-9a-f]{64})", line))
    hashes.pop("", None)
    return hashes


def normalized(name: str) -> str:
    """The name of a package as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def licences(bom: Json) -> dict[str, str]:
    """Component and version -> its licences, as its own metadata names them."""
    return {f"{each['name']} {each['version']}": _licence(each) for each in bom["components"]}


def _licence(component: Json) -> str:
    named = []
    for each in component.get("licenses", ()):
        licence = each.get("license", {})
        named.append(each.get("expression") or licence.get("id") or licence.get("name", ""))
    texts = dict.fromkeys(filter(None, named)) or [_BY_LICENSE_FILE.get(component["name"], "")]
    return " or ".join(texts)


def not_permitted(named: Mapping[str, str]) -> dict[str, str]:
    """Components whose licence is none of the permitted ones, or not known."""
    return {name: licence for name, licence in named.items() if not PERMITTED.search(licence)}
