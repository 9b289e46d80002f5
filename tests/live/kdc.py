"""A Kerberos KDC on this machine, from Debian's packages, with keytabs of a broker and a client."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import fetched

REALM = "QUOTAFLOW.TEST"
BROKER = f"kafka/localhost@{REALM}"
CLIENT = f"quotaflow@{REALM}"
_PACKAGES = (
    *("krb5-kdc", "krb5-user", "krb5-admin-server", "libgssrpc4", "libkadm5srv-mit12"),
    *("libkadm5clnt-mit12", "libkdb5-10", "libkrb5-3", "libgssapi-krb5-2", "libkrb5support0"),
    *("libk5crypto3", "libverto1", "libverto-libev1", "libev4", "python3-gssapi"),
    "python3-decorator",
)
_LIBRARIES, _PYTHON = "usr/lib/x86_64-linux-gnu", "usr/lib/python3/dist-packages"
_START_WITHIN_S = 120


@dataclass(frozen=True, slots=True)
class Kdc:
    """A running KDC: its client configuration, the keytabs, and Python's package for it."""

    conf: Path
    broker_keytab: Path
    client_keytab: Path
    packages: Path


@contextmanager
def running(folder: Path, port: int) -> Iterator[Kdc]:
    """A KDC of a new realm."""
    unpacked = fetched.from_debian(*_PACKAGES)
    conf = _configure(folder, unpacked, port)
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(unpacked / _LIBRARIES),
        "KRB5_CONFIG": str(conf),
        "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
    }

    def tool(name: str, *arguments: str) -> None:
        command = [unpacked / "usr/sbin" / name, *arguments]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    tool("kdb5_util", "create", "-s", "-P", "master", "-r", REALM)
    for file, name in (("broker.keytab", BROKER), ("client.keytab", CLIENT)):
        tool("kadmin.local", "-r", REALM, "-q", f"addprinc -randkey {name}")
        tool("kadmin.local", "-r", REALM, "-q", f"ktadd -k {folder / file} {name}")
    command = [unpacked / "usr/sbin/krb5kdc", "-n", "-r", REALM]
    with (folder / "kdc.out").open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        _await_start(folder / "kdc.log", process)
        packages = folder / "python"
        _link(unpacked / _PYTHON, packages)
        yield Kdc(conf, folder / "broker.keytab", folder / "client.keytab", packages)
    finally:
        process.terminate()
        process.wait(10)


def _configure(folder: Path, unpacked: Path, port: int) -> Path:
    (folder / "kdc.conf").write_text(
        f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{port}\n kdc_tcp_listen = 127.0.0.1:{port}\n"
        f"[realms]\n {REALM} = {{\n  database_name = {folder}/principal\n"
        f"  key_stash_file = {folder}/stash\n  acl_file = {folder}/acl\n }}\n"
    )
    conf = folder / "krb5.conf"
    conf.write_text(
        f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n rdns = false\n"
        " dns_canonicalize_hostname = false\n"
        f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{port}\n }}\n"
        f"[domain_realm]\n localhost = {REALM}\n 127.0.0.1 = {REALM}\n"
        f"[dbmodules]\n db_module_dir = {unpacked}/{_LIBRARIES}/krb5/plugins/kdb\n"
        f"[logging]\n kdc = FILE:{folder}/kdc.log\n"
    )
    return conf


def _await_start(log: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_WITHIN_S
    log.touch()
    while "commencing operation" not in (text := log.read_text(encoding="utf-8")):
        assert process.poll() is None, text
        assert time.monotonic() < deadline, "the KDC did not start"
        time.sleep(0.05)


def _link(packages: Path, folder: Path) -> None:
    """Only what is needed: others of Debian's packages must not hide those of this environment."""
    folder.mkdir()
    for name in ("gssapi", "decorator.py"):
        (folder / name).symlink_to(packages / name)
