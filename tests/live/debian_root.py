"""An empty Debian in a folder, by debootstrap, and commands in it as in a container."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import fetched

RELEASE = "bookworm"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# What the image debian:bookworm-slim leaves out, about which packages of Debian may stumble.
_SLIM = ("/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/man/*")
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_TIMEOUT_S = 1_500
_END = "-----END CERTIFICATE-----\n"
_FOR_REGISTRIES = ("PIP_", "JAVA_TOOL_OPTIONS", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
# A root that is no mount has no file store for Java: a broker could not describe its log dirs.
_IN_FOLDER = """\
mount --bind "$0" "$0" && mount -t proc proc "$0/proc" \\
  && exec chroot "$0" sh -c "cd /context && exec sh steps.sh"
"""
# What is mounted in a namespace is gone with its last process, also after kill -9.
_APART = ("unshare", "--mount", "--pid", "--fork", "--kill-child")


@dataclass(frozen=True, slots=True)
class Container:
    """What one `docker run --rm` gets beside image and command.

    `volumes` are folders or files of this machine by their place in the container. Without a
    network there is a loopback device alone.
    """

    user: str
    working_folder: str
    environment: Mapping[str, str]
    volumes: Mapping[str, Path]
    has_network: bool = False


def make(folder: Path) -> None:
    """Debian's smallest system, with the access to package registries that this machine has."""
    unpacked = fetched.from_debian("debootstrap")
    tools = {"DEBOOTSTRAP_DIR": str(unpacked / "usr/share/debootstrap")}
    command = [unpacked / "usr/sbin/debootstrap", "--variant=minbase", RELEASE, folder, _mirror()]
    _checked([*_APART, *command], os.environ | tools)
    (folder / "etc/dpkg/dpkg.cfg.d/quick").write_text("force-unsafe-io\n")
    _copy_access(folder)


def make_slim(folder: Path) -> None:
    """As `make`, less what Debian's slim image leaves out."""
    make(folder)
    excluded = "".join(f"path-exclude {pattern}\n" for pattern in _SLIM)
    (folder / "etc/dpkg/dpkg.cfg.d/slim").write_text(excluded)
    for pattern in _SLIM:
        for each in folder.glob(pattern.lstrip("/")):
            shutil.rmtree(each) if each.is_dir() else each.unlink()


def _mirror() -> str:
    """Where this machine gets Debian's packages."""
    uri = _checked(["apt-get", "download", "--print-uris", "debootstrap"])
    return uri.strip("'").partition("/pool/")[0]


def _copy_access(folder: Path) -> None:
    """Sources of apt and pip, hosts, and certificates: so no file of ours names a registry."""
    apt = folder / "etc/apt"
    (apt / "sources.list").unlink(missing_ok=True)
    shutil.copytree("/etc/apt/sources.list.d", apt / "sources.list.d", dirs_exist_ok=True)
    for name in ("apt/sources.list", "apt/auth.conf", "pip.conf", "resolv.conf", "hosts"):
        if Path("/etc", name).exists():
            shutil.copy(Path("/etc", name), folder / "etc" / name)
    (apt / "apt.conf.d/90this-machine").write_text(_checked(["apt-config", "dump", "Acquire"]))
    own = folder / "usr/local/share/ca-certificates"
    own.mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(_CERTIFICATES.read_text("utf-8").split(_END)[:-1]):
        (own / f"this-machine-{number}.crt").write_text(text + _END)


def build(folder: Path, script: str, context: Path, timeout_s: float = _TIMEOUT_S) -> str:
    """Run a shell script as root in a copy of `context`; returns what was printed."""
    shutil.copytree(context, folder / "context")
    (folder / "context" / "steps.sh").write_text(script)
    given = {
        name: value
        for name, value in os.environ.items()
        if name.upper().startswith(_FOR_REGISTRIES)
    }
    printed = _checked(
        [*_APART, "sh", "-c", _IN_FOLDER, folder],
        {"PATH": _PATH, "HOME": "/root", **given},
        timeout_s,
    )
    shutil.rmtree(folder / "context")
    return printed


def run(
    image: Path, scratch: Path, container: Container, command: Sequence[str]
) -> subprocess.CompletedProcess[str]:
    """Run a command over the image, which stays as it is: what it writes is in `scratch`/over."""
    words = _words(image, scratch, container, command)
    return subprocess.run(words, capture_output=True, text=True, timeout=900, check=False)


@contextmanager
def started(
    image: Path, scratch: Path, container: Container, command: Sequence[str]
) -> Iterator[subprocess.Popen[str]]:
    """As `run`, while it runs: the only child is the container's first process. Killed at the end.

    What it prints, errors too, is its stdout.
    """
    words = _words(image, scratch, container, command)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _words(image: Path, scratch: Path, container: Container, command: Sequence[str]) -> list[str]:
    for name in ("over", "work", "root"):
        (scratch / name).mkdir(parents=True)
        (scratch / name).chmod(0o755)
    script = "\n".join(_script(image, scratch, container, command))
    return [*_APART, *([] if container.has_network else ["--net"]), "sh", "-c", script]


def _script(
    image: Path, scratch: Path, container: Container, command: Sequence[str]
) -> Iterator[str]:
    root = scratch / "root"
    layers = f"lowerdir={image},upperdir={scratch}/over,workdir={scratch}/work"
    yield "set -eu"
    yield shlex.join(["mount", "-t", "overlay", "overlay", "-o", layers, str(root)])
    for place, source in container.volumes.items():
        target = shlex.quote(f"{root}{place}")
        yield f"[ -e {target} ] || mkdir -p {target}"
        yield f"mount --bind {shlex.quote(str(source))} {target}"
    yield f"mount -t proc proc {shlex.quote(str(root))}/proc"
    yield "ip link set lo up"
    words = ["exec", "chroot", f"--userspec={container.user}", str(root), "env", "-i"]
    words += [f"{name}={value}" for name, value in container.environment.items()]
    words += ["sh", "-c", 'cd "$0" && exec "$@"', container.working_folder, *command]
    yield shlex.join(words)


def _checked(
    command: Sequence[str | Path],
    environment: Mapping[str, str] | None = None,
    timeout_s: float = _TIMEOUT_S,
) -> str:
    done = subprocess.run(
        command,
        env=environment,
        umask=0o022,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-5_000:]
    return done.stdout
