"""What client ids of one program share: `program_of(client_id)`, for results, views and answers.

What varies becomes `*`: numbers, random parts, and the roles of the clients of Kafka Streams,
Connect and Spark. What varies in a row is one `*`. A name is a text that a client chooses, so this
is a guess: a random part that looks like a word stays, and a version counts as a number.

`version_number(version)` is a number by which versions of libraries compare, for all three.
"""

import re
from collections.abc import Callable

_MOST_CHARACTERS = 200
"""Kafka bounds no client id."""
_POD = "[bcdfghjklmnpqrstvwxz2456789]"
"""What Kubernetes makes names of: neither vowels nor figures that look like letters."""
_C, _V = "[bcdfghjklmnpqrstvwxz]", "[aeiouy]"
_UUID = "[0-9a-f]{8}[-¦][0-9a-f]{4}[-¦][0-9a-f]{4}[-¦][0-9a-f]{4}[-¦][0-9a-f]{12}"
_MONTH = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"

_AS_IT_IS = "^hmac[.]|[¦§]"
"""A pseudonym has no parts, and what has our marks is no name that a program gives itself."""
_HEX_WORDS = (
    "cafe|face|faced|facade|fade|faded|dead|deaf|bead|beaded|beef|feed|deed|decade|decaf|added"
)
_WORDS = "|".join(
    (
        "deadbeef|cafebabe|feedface|deadface|baadf00d|cafed00d",
        # No vowels, as in names of pods.
        "https?|html|xhtml|xmlns|httpd|mqtts?|grpcs?|smtps?|sftps?|dhcpd?|jdbc|xslt|tmpfs",
        "mssql|pgsql|plsql|rdbms|cnsmr|prdcr|strms|clstr|brkrs|wrkrs|srvcs|prcsr|rprts|pmnts",
        "tls|ssl|rpc|sql|xml|prd|stg|tst|srv|svc|gcp|k8s|log4j|v[0-9]+(?:alpha|beta)",
    )
)
_SPOKEN = (
    f"{_C}{{0,3}}{_V}{{1,4}}(?:{_C}{{1,3}}{_V}{{1,4}})+{_C}{{0,4}}"
    "|sync|sink|source|stream|bridge|store|job|test|load|feed|link|pipe|push|pull|dump"
)
"""Words behind a figure, as in kafka2snowflake and s3connector."""
_RANDOM = (
    r"(?:Global)?StreamThread.*$",
    r"\b(connector-)(?:consumer|producer|dlq-producer|adminclient)\b",
    # Spark's readers and Streams' admin clients have a role behind.
    rf"(?i:\{{?{_UUID}\}}?(?:(?:--?[0-9]+)?-(?:driver-[0-9]+|executor)\b|-admin$)?)",
    "(?i:[0-9a-f]{32,})",
    # Pods of Deployments, CronJobs, and of Jobs and DaemonSets.
    rf"(-)(?:{_POD}{{6,10}}-|[0-9]{{7,10}}-)?{_POD}{{5}}\b",
    # Nodes of GKE and AKS, and commits of git.
    r"\b[0-9a-f]{8}-[0-9a-z]{4}$",
    r"\bvmss[0-9a-z]{6}\b",
    r"\bg[0-9a-f]{7,12}\b",
    r"(?i:\b[0-9a-f]{8,}\b)",
    # Of six and seven with a figure: words of these letters are many.
    r"(?i:\b(?:[0-9][0-9a-f]{5,6}|[a-f][0-9][0-9a-f]{4,5}|[a-f]{2}[0-9][0-9a-f]{3,4}"
    r"|[a-f]{3}[0-9][0-9a-f]{2,3}|[a-f]{4}[0-9][0-9a-f]{1,2}|[a-f]{5}[0-9][0-9a-f]?|[a-f]{6}[0-9])\b)",
    # IPv6 and MAC addresses.
    r"(?i:\b(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}\b|\b[23f][0-9a-f]{3}(?:::?[0-9a-f]{1,4}\b)+)",
    rf"(?i:\b[0-9]{{1,2}}[- ¦]?{_MONTH}[- ¦]?[0-9]{{2,4}})",
)
_STEPS = (
    # A word gets a mark, so that no step takes it, or its number, for something random.
    (rf"(?i)\b(?:({_HEX_WORDS})([0-9]{{1,3}})|({_WORDS})([0-9]*))\b", "$1$3_$2$4"),
    ("|".join(_RANDOM), "$1$2*"),
    # Of eight and more characters with a figure before a letter, and no words around a figure.
    (
        rf"(?i)\b(?:((?:[a-z]*[0-9]{{1,4}}){{1,2}}(?:{_SPOKEN}))|([a-z]*[0-9]+[a-z][0-9a-z]*))\b",
        "$1_$2§",
    ),
    ("(?i)_[0-9a-z]{8,}§", "*"),
    ("[*0-9]+", "*"),
)
_CALL = re.compile(r"program_of(?<!\wprogram_of)\(([\w.]+)\)")
_VERSION_CALL = re.compile(r"version_number\(([\w.]+)\)")


def _nested(text: str, matches: str, step: Callable[[str, str, str], str]) -> str:
    cut = f"left({text}, {_MOST_CHARACTERS})"
    # The mark of words is a letter to an expression: underscores of names give way to it.
    made = f"replace({cut}, '_', '¦')"
    for pattern, replacement in _STEPS:
        made = step(made, pattern, replacement)
    made = f"replace(replace(replace({made}, '_', ''), '§', ''), '¦', '_')"
    return f"CASE WHEN {matches.format(text, _AS_IT_IS)} THEN {cut} ELSE {made} END"


def in_duckdb(text: str) -> str:
    """The program of a text (an expression), in DuckDB's SQL."""
    return _nested(
        text,
        "regexp_matches({}, '{}')",
        lambda made, pattern, replacement: (
            f"regexp_replace({made}, '{pattern}', '{replacement.replace('$', chr(92))}', 'g')"
        ),
    )


def in_spark(text: str) -> str:
    """The program of a text (an expression), in Spark's SQL."""
    return _nested(
        text,
        "{} RLIKE '{}'",
        lambda made, pattern, replacement: (
            f"regexp_replace({made}, '{pattern.replace(chr(92), chr(92) * 2)}', '{replacement}')"
        ),
    )


def program_of(client_id: str) -> str:
    """The program of a client id, where there is one at hand."""
    made = client_id[:_MOST_CHARACTERS].replace("_", "¦")
    if re.search(_AS_IT_IS, client_id):
        return client_id[:_MOST_CHARACTERS]
    for pattern, replacement in _STEPS:
        groups = re.sub(r"\$([0-9])", r"\\\1", replacement)
        made = re.sub(pattern, groups, made, flags=re.ASCII)
    return made.replace("_", "").replace("§", "").replace("¦", "_")


def expanded(sql: str) -> str:
    """A query in Spark's SQL with both functions written out: Spark has no macros."""
    written_out = _CALL.sub(lambda call: in_spark(call[1]), sql)
    return _VERSION_CALL.sub(lambda call: _version_number(call[1]), written_out)


def _version_number(text: str) -> str:
    """A version as a number by which versions compare: 2.10.0 is 2010000. Null without a number."""
    major, minor, patch = (
        f"TRY_CAST(regexp_extract({text}, '^v?{before}([0-9]+)', 1) AS INT)"
        for before in ("", "[0-9]+[.]", "[0-9]+[.][0-9]+[.]")
    )
    smaller = f"least(coalesce({minor}, 0), 999) * 1000 + least(coalesce({patch}, 0), 999)"
    return f"CAST({major} AS BIGINT) * 1000000 + {smaller}"


MACROS = (
    f"CREATE MACRO program_of(client_id) AS {in_duckdb('client_id')};\n"
    f"CREATE MACRO version_number(version) AS {_version_number('version')};"
)
"""For rules, which DuckDB runs."""
