"""Pictures of the report and of served pages, for docs/img.

`python -m tests.pictures [--warehouse FOLDER]`: without a folder, of the last `quotaflow demo`.
"""

import argparse
import sys
import tempfile
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import quote

from quotaflow.pipelines import config
from quotaflow.pipelines.areas.clusters import clusters
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.config.cluster import ClusterSection
from quotaflow.pipelines.report.report import report
from quotaflow.pipelines.serve.access import Access
from quotaflow.pipelines.serve.server import serving
from quotaflow.pipelines.serve.site import QuotaflowSite
from quotaflow.pipelines.serve.tables import ServedTables
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from .pipelines.report.browser import Browser, browser

FOLDER = Path(__file__).parents[1] / "docs" / "img"
_CLUSTER = ClusterSection(name="demo", environment="three brokers", owner="platform team")
_NAMES = {
    "principal": "User:dave",
    "client": "rdk-orders-alice",
    "group": "sales-reports",
    "topic": "orders",
    "broker": "1",
}
"""Names of the demo by the kind of their page: dave's quota is too small, the group lags."""
_DESK_PX, _PHONE_PX, _PAPER_PX = 1_280, 390, 794
_MAX_BYTES = 300_000
_DAY, _MINUTE = timedelta(days=1), timedelta(minutes=1)
_MARGIN = "document.body.style.padding = '3rem'"


@dataclass(frozen=True, slots=True)
class _Address:
    url: str

    def as_uri(self) -> str:
        return self.url


@dataclass(frozen=True, slots=True)
class _Picture:
    """A picture of a page from the heading of a section on, or from the top on."""

    name: str
    width_px: int
    height_px: int
    section: str = ""
    is_dark: bool = False
    media: str = "screen"
    is_scripted: bool = True

    def take(self, shown: Browser, page: _Address | Path) -> None:
        """Write it to docs/img."""
        shown.ask("Emulation.setScriptExecutionDisabled", value=not self.is_scripted)
        shown.ask("Emulation.setScrollbarsHidden", hidden=True)
        shown.open(page, self.width_px, is_dark=self.is_dark, media=self.media)
        if self.media == "print":
            shown.value(_MARGIN)
        head = f"document.querySelector('#{self.section}-head').getBoundingClientRect().top - 16"
        top_px = shown.value(head) if self.section else 0
        file = FOLDER / f"{self.name}.png"
        shown.picture(file, self.height_px, top_px)
        size_bytes = file.stat().st_size
        sys.stdout.write(f"{file.name}: {size_bytes / 1e3:.0f} kB\n")
        assert size_bytes <= _MAX_BYTES, "too large for a page of docs: take less of its height"


_OF_FILE = (
    _Picture("report-desktop", _DESK_PX, 1_170),
    _Picture("report-phone", _PHONE_PX, 3 * 844),
    _Picture("report-dark", _DESK_PX, 1_100, "traffic-between-racks", is_dark=True),
    _Picture("report-print", _PAPER_PX, 1_123, media="print"),
)
_SERVED = (
    _Picture("report-no-js", _DESK_PX, 1_100, "replication-throttles-and-moves", is_scripted=False),
)
_OF_NAMES = [
    _Picture(f"served-{kind}", 1_024, 2_050 if kind == "principal" else 1_200) for kind in _NAMES
]


def main() -> None:
    """Take every picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--warehouse", type=Path, default=config.home() / "warehouse")
    place = parser.parse_args().warehouse
    conf = config.load(overrides=[f"warehouse.path={place}"])
    conf = conf.model_copy(update={"cluster": _CLUSTER})
    reader = FolderReader(Warehouse(conf.warehouse))
    ((cluster_id, newest),) = clusters(reader).items()
    now = newest + _MINUTE
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browser(Path(folder)) as shown:
        made = Scope(reader, cluster_id, newest - _DAY, newest, now, conf)
        file = Path(folder) / "report.html"
        file.write_text(report(made), encoding="utf-8")
        for picture in _OF_FILE:
            picture.take(shown, file)
        _of_served(shown, conf, now)


def _of_served(shown: Browser, conf: config.Conf, now: datetime) -> None:
    site = QuotaflowSite(ServedTables(conf, None, _DAY, lambda: now), 30)
    with serving(site, ("127.0.0.1", 0), Access()) as url:
        for picture in _SERVED:
            picture.take(shown, _Address(url))
        for picture, (kind, name) in zip(_OF_NAMES, _NAMES.items(), strict=True):
            picture.take(shown, _Address(f"{url}{kind}?name={quote(name)}"))


if __name__ == "__main__":
    main()
