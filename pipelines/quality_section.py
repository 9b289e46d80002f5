"""The section of conf about quality: where its pages go, and what a plan may stand on."""

from quotaflow.pipelines.section import Section


class Quality(Section):
    """Where `quotaflow check` writes its pages, and whether a plan needs tables that were checked.

    `data_docs` is a folder, beside the tables where conf names none. With `required` a plan takes
    rows only where every table they stand on was checked; else one that never was is no obstacle.
    """

    data_docs: str | None = None
    required: bool = False
