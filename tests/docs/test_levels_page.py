"""docs/levels.md has the managed services that doctor recognizes."""

import re

from quotaflow.pipelines.doctor.managed_services import SERVICES

from .pages import text_of

PAGE = text_of("docs/levels.md")


def test_each_managed_service_that_doctor_knows_has_a_row() -> None:
    rows = re.findall(r"^\| ([A-Z][\w ]+?) \| no", PAGE, re.M)
    assert rows == [
        service.name.removesuffix(" Cloud") if "Redpanda" in service.name else service.name
        for service in SERVICES
    ]
