"""Kerberos on a real broker with a KDC of Debian: by a keytab, for every use."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.ports import LOOPBACK, free_ports

from . import all_uses, kdc
from .kdc import Kdc

pytestmark = pytest.mark.more

MODULE = "com.sun.security.auth.module.Krb5LoginModule"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Kdc, dict[str, str]]]:
    """Shared: a KDC, and a client's properties for a broker of its realm."""
    folder = tmp_path_factory.mktemp("kerberos")
    ports = free_ports(1, random.Random())[0]
    address = f"{LOOPBACK}:{ports.client}"
    with kdc.running(folder, ports.internal) as running:
        login = (
            f'{MODULE} required useKeyTab="true" storeKey="true" isInitiator="false" '
            f'keyTab="{running.broker_keytab}" principal="{kdc.BROKER}";'
        )
        settings = {
            "listeners+": f",KERBEROS://{address}",
            # Java's client and kafka-python name a broker by its address in two ways.
            "advertised.listeners+": f",KERBEROS://localhost:{ports.client}",
            "listener.security.protocol.map+": ",KERBEROS:SASL_PLAINTEXT",
            "listener.name.kerberos.sasl.enabled.mechanisms": "GSSAPI",
            "listener.name.kerberos.gssapi.sasl.jaas.config": login,
            "sasl.kerberos.service.name": "kafka",
        }
        options = [f"-Djava.security.krb5.conf={running.conf}"]
        with LocalCluster(folder / "cluster", 1, settings=settings, java_options=options):
            yield (
                running,
                {
                    "bootstrap.servers": f"localhost:{ports.client}",
                    "security.protocol": "SASL_PLAINTEXT",
                    "sasl.mechanism": "GSSAPI",
                    "sasl.kerberos.keytab": str(running.client_keytab),
                    "sasl.kerberos.principal": kdc.CLIENT,
                },
            )


def environment(running: Kdc) -> dict[str, str]:
    """Of a process with Python's package for Kerberos."""
    path = filter(None, [os.environ.get("PYTHONPATH"), str(running.packages)])
    return os.environ | {"KRB5_CONFIG": str(running.conf), "PYTHONPATH": os.pathsep.join(path)}


def test_a_keytab_does_for_every_use(site: tuple[Kdc, dict[str, str]], tmp_path: Path) -> None:
    running, properties = site
    all_uses.check_alone(properties, tmp_path, environment(running))


def test_another_principal_is_one_error(site: tuple[Kdc, dict[str, str]], tmp_path: Path) -> None:
    running, properties = site
    wrong = properties | {"sasl.kerberos.principal": f"nobody@{kdc.REALM}"}
    with pytest.raises(AssertionError, match="no Kerberos ticket for nobody@"):
        all_uses.check_alone(wrong, tmp_path, environment(running))
