"""The steps of the Dockerfile in an empty Debian, and what they make, used as operate.md says.

Without Docker: debootstrap makes what FROM would bring, less what Debian's image leaves out; chroot
in namespaces of its own does for a container, with the image below an overlay as Docker has it.
`docker build` itself and its copying by .dockerignore are not shown.
"""

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import psutil
import pytest
import yaml
from kafka import KafkaProducer

from quotaflow.demo.broker_config import REQUEST_LOG_TOPIC
from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines import interrupts
from quotaflow.pipelines.kafka import admin

from ..command_line import in_options
from ..release_tools import ROOT, tool
from . import debian_root
from .conftest import QUICK
from .debian_root import Container

pytestmark = [
    pytest.mark.more,
    pytest.mark.timeout(2_400),
    pytest.mark.usefixtures("root"),
]

steps, _, _, build = map(tool, ("dockerfile_steps", "sbom", "receiver_jar", "build"))
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
INSTRUCTIONS = list(steps.instructions(DOCKERFILE))
HOME = "var/lib/quotaflow"
CONF = "/etc/quotaflow"
STOPS_WITHIN_S = 60
TRANSLATIONS = "opt/quotaflow/cache/quotaflow/translations/"
FEW_TEXTS = 10
"""Of texts that depend on conf: those of views and answers come with the image."""
LINES = ROOT / "tests" / "golden" / "versions" / "4.3.1.jsonl"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Shared, to read: the folder in which all steps ran."""
    context = tmp_path_factory.mktemp("context")
    shutil.copy(ROOT / "requirements.txt", context)
    build.packages(context / "dist")
    folder = tmp_path_factory.mktemp("image")
    debian_root.make_slim(folder)
    debian_root.build(folder, "\n".join(steps.script(DOCKERFILE)), context)
    yield folder
    shutil.rmtree(folder)


@dataclass(frozen=True, slots=True)
class Site:
    """A machine with the image, a volume, and a folder of conf that only its group reads."""

    image: Path
    folder: Path
    secrets: dict[str, str]
    numbers: Iterator[int]

    def run(self, *arguments: str, has_network: bool = False) -> str:
        """What `docker run --rm` of the page does; nothing may be written but into the volume."""
        scratch = self.folder / f"container-{next(self.numbers)}"
        container = replace(self.container(), has_network=has_network)
        command = [*entrypoint(), *arguments]
        done = debian_root.run(self.image, scratch, container, command)
        assert done.returncode == 0, done.stdout + done.stderr
        texts, others = written(scratch / "over")
        assert (others, len(texts) <= FEW_TEXTS) == ([], True), texts
        return done.stdout

    def container(self) -> Container:
        """As the Dockerfile and the command of operate.md have it."""
        environment = dict(pair.split("=", 1) for name, pair in INSTRUCTIONS if name == "ENV")
        # Names of hosts cannot be looked up, not even with a network.
        nameless = self.folder / "resolv.conf"
        nameless.touch()
        return Container(
            user="quotaflow",
            working_folder=dict(INSTRUCTIONS)["WORKDIR"],
            environment=environment | {"HOME": f"/{HOME}"} | self.secrets,
            volumes={
                f"/{HOME}": self.folder / "volume",
                CONF: self.folder / "conf",
                "/etc/resolv.conf": nameless,
            },
        )


def entrypoint() -> list[str]:
    return list(yaml.safe_load(dict(INSTRUCTIONS)["ENTRYPOINT"]))


def written(over: Path) -> tuple[list[str], list[str]]:
    """The files that a container wrote outside its volume and /tmp: kept translations, others."""
    files = (path.relative_to(over) for path in over.rglob("*") if not path.is_dir())
    left = sorted(str(path) for path in files if not path.is_relative_to("tmp"))
    texts = [name for name in left if name.startswith(TRANSLATIONS)]
    return texts, [name for name in left if name not in texts]


@pytest.fixture
def site(image: Path, tmp_path: Path, cluster: LocalCluster) -> Site:
    """A new volume gets what the image has there."""
    subprocess.run(["cp", "-a", image / HOME, tmp_path / "volume"], check=True)
    folder = tmp_path / "conf"
    folder.mkdir()
    folder.chmod(0o750)
    shutil.chown(folder, group=(image / HOME).stat().st_gid)
    secrets = {"QUOTAFLOW_JAAS": cluster.client_properties("admin")["sasl.jaas.config"]}
    return Site(image, tmp_path, secrets, count())


def test_the_steps_leave_the_program_alone(image: Path) -> None:
    assert [path for path in (image / "tmp").rglob("*") if not path.is_dir()] == []
    assert not (image / "tmp" / "quotaflow").exists()
    assert not (image / "root" / ".cache").exists()
    assert list((image / "var/lib/apt/lists").glob("*Packages*")) == []
    user = (image / HOME).stat()
    assert (user.st_uid, user.st_gid) == (10_001, 10_001)
    owned = {path for path in image.rglob("*") if path.lstat().st_uid == user.st_uid}
    cache = image / "opt/quotaflow/cache"
    assert {cache, *cache.rglob("*")} <= owned
    others = {path for path in owned if not path.is_relative_to(cache)}
    assert all(path.is_relative_to(image / HOME) for path in others), others


def test_without_arguments_it_prints_its_help(site: Site) -> None:
    assert site.run("--version").split() == ["quotaflow", build.project()["version"]]
    assert "Usage: quotaflow" in site.run(*yaml.safe_load(dict(INSTRUCTIONS)["CMD"]))


def login_options(cluster: LocalCluster) -> list[str]:
    given = cluster.client_properties("admin") | {"sasl.jaas.config": "env:QUOTAFLOW_JAAS"}
    return in_options(*(f"kafka.properties.{key}={value}" for key, value in given.items()))


def test_it_fills_tables_in_its_volume_and_fetches_nothing(
    site: Site, cluster: LocalCluster
) -> None:
    properties = cluster.client_properties("admin")
    sets = login_options(cluster)
    server = properties["bootstrap.servers"]
    site.run("init", "--bootstrap-server", server, "--out", "setup", *sets, has_network=True)
    conf = site.folder / "conf" / "conf.yaml"
    shutil.copy(site.folder / "volume" / "setup" / "conf.yaml", conf)
    with closing(KafkaProducer(**admin.options(properties))) as producer:
        producer.send(REQUEST_LOG_TOPIC, LINES.read_bytes().splitlines()[0]).get(timeout=60)
    place = ["--conf", f"{CONF}/conf.yaml"]
    quick = in_options(*QUICK)
    site.run("run", "--once", *place, *quick, has_network=True)
    site.run("snapshot", *place, has_network=True)
    # Spark, without a network at all.
    site.run("upkeep", *place, *quick)
    site.run("report", "--out", "today.html", *place)
    assert "<html" in (site.folder / "volume" / "today.html").read_text(encoding="utf-8")
    rows = site.run("sql", "SELECT count(*) AS n FROM requests", "--json", *place)
    assert json.loads(rows)["n"] >= 1


def test_docker_stop_ends_it_as_ctrl_c_does(site: Site, cluster: LocalCluster) -> None:
    sets = [*login_options(cluster), *in_options(*QUICK)]
    command = [*entrypoint(), "run", "ingest_request_log", "--every", "1s", *sets]
    container = replace(site.container(), has_network=True)
    started = debian_root.started(site.image, site.folder / "stopped", container, command)
    table = site.folder / "volume" / "warehouse" / "requests"
    with started as process:
        while not table.is_dir():
            assert process.poll() is None, process.communicate()
            time.sleep(0.5)
        (first,) = psutil.Process(process.pid).children()
        first.send_signal(signal.Signals[dict(INSTRUCTIONS)["STOPSIGNAL"]])
        seen, _ = process.communicate(timeout=STOPS_WITHIN_S)
    assert process.returncode == interrupts.EXIT_CODE, seen
