"""docs/levels.md lists every view that answers questions under the level that its head names."""

import re
from pathlib import Path

from quotaflow.pipelines.doctor.managed_services import SERVICES
from quotaflow.pipelines.warehouse import views
from quotaflow.schemas.levels import LEVELS

PAGE = (Path(__file__).parents[2] / "docs" / "levels.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## Which view needs what")[2].partition("\n## ")[0]


def test_each_mart_is_listed_under_its_level() -> None:
    listed = {
        level: re.findall(r"`(\w+)`", row)
        for level, row in re.findall(r"^\| `(\w+)` \| (.*) \|$", SECTION, re.M)
    }
    marts = [view for view in views.load().values() if view.kind == "mart"]
    assert listed == {
        level: sorted(view.name for view in marts if view.level == level) for level in LEVELS
    }


def test_each_managed_service_that_doctor_knows_has_a_row() -> None:
    rows = re.findall(r"^\| ([A-Z][\w ]+?) \| no", PAGE, re.M)
    assert rows == [
        service.name.removesuffix(" Cloud") if "Redpanda" in service.name else service.name
        for service in SERVICES
    ]
