"""A broker's listeners with TLS and passwords: certificates made by keytool, users, and a client's configuration."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.live_brokers.jvm import Listener

PASSWORD = "kaudit-tests"  # of key stores that live as long as a test
USERS = {"auditor": "auditor-secret", "stranger": "stranger-secret"}
"""Password by user; none of them is a super user."""
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
AUTHORIZER: dict[str, object] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
"""Whoever comes over the plain listener may do anything, users only what ACLs grant them."""


@dataclass(frozen=True)
class Certificate:
    """A server's self-signed certificate for 127.0.0.1: its key store, and what a client trusts, as PEM and as PKCS12."""

    keystore: Path
    pem: Path
    truststore: Path


def certificate(home: Path) -> Certificate:
    """Make a certificate below `home`."""
    home.mkdir(parents=True)
    made = Certificate(home / "server.p12", home / "server.pem", home / "trusted.p12")
    _keytool(made.keystore, "-genkeypair", "-keyalg", "EC", "-dname", "CN=kaudit test broker", "-validity", "2",
             "-ext", "san=ip:127.0.0.1,dns:localhost")  # fmt: skip
    _keytool(made.keystore, "-exportcert", "-rfc", "-file", str(made.pem))
    _keytool(made.truststore, "-importcert", "-noprompt", "-file", str(made.pem))
    return made


def _keytool(store: Path, *arguments: str) -> None:
    command = ["keytool", *arguments, "-alias", "broker", "-storetype", "PKCS12", "-storepass", PASSWORD]
    subprocess.run([*command, "-keystore", str(store)], check=True, capture_output=True)


def listeners(made: Certificate) -> tuple[Listener, ...]:
    """A listener with TLS alone, and one with TLS that asks for a user by SCRAM-SHA-512 or PLAIN."""
    tls = {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": made.keystore,
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
    }
    users = " ".join(f'user_{name}="{secret}"' for name, secret in USERS.items())
    sasl = {
        "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{_SCRAM};",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f"{_PLAIN} {users};",
    }
    return (Listener("SSL", tls), Listener("SASL_SSL", {**tls, **sasl}))


def client_properties(pem: Path, mechanism: str, user: str, password: str) -> str:
    """A `--command-config` file for the listener `SASL_SSL`, in Java's property format."""
    module = _PLAIN if mechanism == "PLAIN" else _SCRAM
    return (
        "security.protocol=SASL_SSL\n"
        f"sasl.mechanism={mechanism}\n"
        f'sasl.jaas.config={module} username="{user}" password="{password}";\n'
        "ssl.truststore.type=PEM\n"
        f"ssl.truststore.location={pem}\n"
    )
