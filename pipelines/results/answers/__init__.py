"""Answers: tables that plans, the report, `why` and dashboards read.

An answer is a table of few rows that is computed whole, from tables, views and other answers. Its
file is `schemas/answers/<name>.sql`: a head, which declares the table and says how far back the
answer reads, and one query in Spark's SQL. `registry.py` has all.

`refresh.refresh` computes each answer whose inputs changed, after the answers that it reads, by
DuckDB in this process (`source.py`): over the files of a folder (`folder.py`), or over what Spark
read of a catalog (`in_catalog.py`). It commits only if rows differ from those in the table.
`answer_state` has, for each answer, the versions of the inputs that it was computed from, and the
error of its last try.

`quotaflow run`, `snapshot`, `rebuild`, `apply` and `restore` refresh at their end. A continuous run
refreshes about once a minute.
"""
