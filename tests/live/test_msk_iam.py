"""AWS_MSK_IAM on a broker with a stand-in of MSK's side, which checks what clients sign.

Nobody has seen it on MSK itself. The signature has its own test in tests/pipelines/kafka/.
"""

import os
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.ports import LOOPBACK, free_ports
from quotaflow.pipelines.spark.jars import kafka_jars
from quotaflow.pipelines.spark.java import compiler

from .. import key_stores as stores
from . import all_uses, fetched

pytestmark = pytest.mark.more

ACCESS_KEY, SECRET_KEY, SESSION_TOKEN = "AKIAEXAMPLE", "wJalrXUtnFEMI/K7MDENG", "token/+= of a role"
_SOURCE = Path(__file__).with_name("MskIamServer.java")


@dataclass(frozen=True, slots=True)
class Msk:
    """A broker that takes AWS_MSK_IAM, and a client's properties and environment for it."""

    properties: dict[str, str]
    environment: dict[str, str]


@pytest.fixture(scope="module")
def msk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Msk]:
    """Shared."""
    folder = tmp_path_factory.mktemp("msk")
    stores.make(folder)
    classes = folder / "classes"
    jars = ":".join(map(str, kafka_jars()))
    compile_ = [*compiler(), "-Xlint:all", "-Werror", "-cp", jars, "-d", classes, _SOURCE]
    done = subprocess.run(compile_, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    address = f"{LOOPBACK}:{free_ports(1, random.Random())[0].client}"
    with LocalCluster(
        folder / "cluster", 1, settings=settings(folder, address), class_path=[classes]
    ):
        packages = fetched.from_pypi("botocore==1.44.8")
        path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(packages)]))
        yield Msk(
            {
                "bootstrap.servers": address,
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "AWS_MSK_IAM",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(folder / "broker.pem"),
            },
            {
                **{key: value for key, value in os.environ.items() if "AWS" not in key},
                "PYTHONPATH": path,
                "AWS_ACCESS_KEY_ID": ACCESS_KEY,
                "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
                "AWS_REGION": "eu-central-1",
            },
        )


def settings(folder: Path, address: str) -> dict[str, str]:
    """What the broker needs for the listener."""
    own = "listener.name.msk"
    return {
        "listeners+": f",MSK://{address}",
        "advertised.listeners+": f",MSK://{address}",
        "listener.security.protocol.map+": ",MSK:SASL_SSL",
        f"{own}.ssl.keystore.location": str(folder / "broker.p12"),
        f"{own}.ssl.keystore.type": "PKCS12",
        f"{own}.ssl.keystore.password": stores.BROKER_PASSWORD,
        f"{own}.ssl.key.password": stores.BROKER_PASSWORD,
        f"{own}.sasl.enabled.mechanisms": "AWS_MSK_IAM",
        f"{own}.aws_msk_iam.sasl.jaas.config": (
            f'quotaflow.MskIamServer$Login required secret="{SECRET_KEY}";'
        ),
    }


def test_an_access_key_does_for_every_use(msk: Msk, tmp_path: Path) -> None:
    all_uses.check_alone(msk.properties, tmp_path, msk.environment)


def test_a_role_of_a_session_does_too(msk: Msk, tmp_path: Path) -> None:
    all_uses.check_alone(
        msk.properties, tmp_path, msk.environment | {"AWS_SESSION_TOKEN": SESSION_TOKEN}
    )


def test_another_secret_is_refused(msk: Msk, tmp_path: Path) -> None:
    wrong = msk.environment | {"AWS_SECRET_ACCESS_KEY": "hunter2"}
    with pytest.raises(AssertionError, match="refused the login"):
        all_uses.check_alone(msk.properties, tmp_path, wrong)
