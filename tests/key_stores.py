"""Key stores as the JDK's keytool makes them: of a broker and a client who trust each other."""

import subprocess
from pathlib import Path

from quotaflow.pipelines.spark.java import java

STORE_PASSWORD = "store-password"
KINDS = ("JKS", "PKCS12")
"""What a type may be called."""
BROKER_PASSWORD = "broker-password"
_EXPORT = "java.base/sun.security.tools.keytool=ALL-UNNAMED"
CLIENT_NAME = "CN=quotaflow, OU=Data \\, Kafka"


def make(folder: Path) -> Path:
    """Stores broker.p12, client.p12 and trust.p12, what the broker trusts, clients.p12, and
    trust.jks in Java's old format.
    """
    own = ("-keyalg", "EC", "-groupname", "secp256r1", "-validity", "2", "-alias", "own")
    broker = ("-keystore", f"{folder}/broker.p12", "-storepass", BROKER_PASSWORD)
    client = ("-keystore", f"{folder}/client.p12", "-storepass", STORE_PASSWORD)
    names = ("-dname", "CN=127.0.0.1", "-ext", "san=ip:127.0.0.1,dns:localhost")
    named = ("-dname", CLIENT_NAME, "-storetype", "PKCS12")
    certificate = ("-noprompt", "-file", f"{folder}/broker.pem", "-alias", "broker")
    trust = (*certificate, "-storepass", STORE_PASSWORD, "-keystore")
    of_client = ("-noprompt", "-file", f"{folder}/client.pem", "-alias", "client")
    clients = ("-keystore", f"{folder}/clients.p12", "-storepass", BROKER_PASSWORD)
    _keytool(
        ("-genkeypair", *own, *broker, *names, "-storetype", "PKCS12"),
        ("-genkeypair", *own, *client, *named),
        ("-exportcert", "-alias", "own", *broker, "-rfc", "-file", f"{folder}/broker.pem"),
        ("-exportcert", "-alias", "own", *client, "-rfc", "-file", f"{folder}/client.pem"),
        ("-importcert", *trust, f"{folder}/trust.jks", "-storetype", "JKS"),
        ("-importcert", *trust, f"{folder}/trust.p12", "-storetype", "PKCS12"),
        ("-importcert", *of_client, *clients, "-storetype", "PKCS12"),
    )
    return folder


def _keytool(*calls: tuple[str, ...]) -> None:
    """Run keytool for each call, in one JVM."""
    flags = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "--add-exports", _EXPORT)
    command = [java(), *flags, Path(__file__).with_name("Keytool.java")]
    lines = "".join("\t".join(call) + "\n" for call in calls)
    done = subprocess.run(
        command, check=False, capture_output=True, timeout=60, input=lines, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def client_properties(folder: Path, kind: str) -> dict[str, str]:
    """Properties of a Java client that logs in by the client's certificate.

    `kind` is what the type of its stores is called: Java reads PKCS12 by the name JKS too.
    """
    return {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(folder / "trust.p12"),
        "ssl.truststore.type": kind,
        "ssl.truststore.password": STORE_PASSWORD,
        "ssl.keystore.location": str(folder / "client.p12"),
        "ssl.keystore.type": kind,
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.key.password": STORE_PASSWORD,
    }
