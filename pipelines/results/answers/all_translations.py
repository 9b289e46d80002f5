"""Translates all views and answers for DuckDB, once for each user and version of a text.

`python -m quotaflow.pipelines.results.answers.all_translations`. Lanes of tests that start side by
side would each translate all of it, and so would each container of an image.
"""

from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.kept_translations import in_duckdb, tables_in


def main() -> None:
    """Keep the translations."""
    texts = [view.sql for view in views.load().values()]
    texts += [text for answer in ANSWERS for text in answer.texts]
    for text in texts:
        in_duckdb(text)
        tables_in(text)


if __name__ == "__main__":
    main()
