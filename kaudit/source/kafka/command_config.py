"""Connection settings: the properties of --command-config that kaudit follows.

Secrets stay in this process and are never shown.
"""

import re
import ssl
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from kaudit.formats.errors import WireError
from kaudit.formats.java_properties import parse_properties
from kaudit.installation import install_command
from kaudit.source.uri import UrlError

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM", "GSSAPI")
_WITH_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_WITH_TOKENS = {"OAUTHBEARER": "kaudit.source.kafka.oauth", "AWS_MSK_IAM": "kaudit.source.kafka.msk"}
"""Modules that few clusters ask for: HTTP takes 40 ms, and Amazon's library is an extra."""
_JAAS_OPTION = re.compile(r"""(\w+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([^\s;"']+))""")
_MAX_FILE_BYTES = 1 << 20


class ClientSettings:
    """The client library's options for a connection, and the bootstrap servers of the file.

    Not a Struct: its contents must not be printed, compared or pickled.
    """

    __slots__ = ("_options", "bootstrap_servers")

    def __init__(self, options: Mapping[str, Any] | None = None, bootstrap_servers: str = "") -> None:
        self._options = dict(options or {})
        self.bootstrap_servers = bootstrap_servers

    @property
    def options(self) -> dict[str, Any]:
        """The client library's options. They may hold a password: for the library only."""
        return dict(self._options)

    def __repr__(self) -> str:
        return "ClientSettings(...)"

    def __reduce__(self) -> str:
        raise TypeError("connection settings hold secrets and are not pickled: load them where they are needed")


@cache
def load_settings(path: str | None) -> ClientSettings:
    """Return the settings of a property file; None: those of a plain connection.

    Raises:
        UrlError: the file cannot be read, or needs a feature that kaudit lacks.

    """
    if path is None:
        return ClientSettings()
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MAX_FILE_BYTES + 1)
        text = data.decode()
    except OSError as error:
        raise UrlError(f"--command-config {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise UrlError(f"--command-config {path}: not a property file: it is not UTF-8") from None
    if len(data) > _MAX_FILE_BYTES:
        raise UrlError(f"--command-config {path}: not a property file: it has more than {_MAX_FILE_BYTES >> 20} MiB")
    try:
        return settings_of(parse_properties(text))
    except WireError as error:
        raise UrlError(f"--command-config {path}: not a property file: {error.detail}") from None
    except UrlError as error:
        raise UrlError(f"--command-config {path}: {error}") from None


def settings_of(properties: Mapping[str, str]) -> ClientSettings:
    """Return the settings that Kafka's client properties ask for.

    Names are those of org.apache.kafka.clients.CommonClientConfigs, SslConfigs and SaslConfigs.

    Raises:
        UrlError: a value is wrong, or needs a feature that kaudit lacks. The text never holds a value that may be secret.

    """
    given = {name: value.strip() for name, value in properties.items()}
    protocol = given.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise UrlError(f"security.protocol is {protocol}: {', '.join(_PROTOCOLS)}")
    options: dict[str, Any] = {"security_protocol": protocol}
    if given.get("client.id"):
        options["client_id"] = given["client.id"]
    if protocol.endswith("SSL"):
        options["ssl_context"] = _ssl_context(given)
    if protocol.startswith("SASL"):
        options |= _sasl(given)
    return ClientSettings(options, given.get("bootstrap.servers", ""))


def _sasl(given: Mapping[str, str]) -> dict[str, Any]:
    mechanism = given.get("sasl.mechanism", "GSSAPI").upper()
    if mechanism not in _MECHANISMS:
        raise UrlError(f"sasl.mechanism is {mechanism}: kaudit knows {', '.join(_MECHANISMS)}")
    jaas = dict(_jaas_options(given.get("sasl.jaas.config", "")))
    options: dict[str, Any] = {"sasl_mechanism": mechanism}
    if mechanism in _WITH_PASSWORD:
        if not jaas.get("username") or "password" not in jaas:
            raise UrlError(f'sasl.jaas.config needs username="..." password="...": {mechanism} logs in with them')
        return options | {"sasl_plain_username": jaas["username"], "sasl_plain_password": jaas["password"]}
    if mechanism in _WITH_TOKENS:
        options["sasl_mechanism"] = "OAUTHBEARER"
        return options | {"sasl_oauth_token_provider": _tokens_by(mechanism)(given, jaas)}
    service = given.get("sasl.kerberos.service.name") or jaas.get("serviceName") or "kafka"
    return options | {"sasl_kerberos_service_name": service}


def _tokens_by(mechanism: str) -> Any:  # noqa: ANN401 - a function of a module
    """Return what makes a provider of tokens. Raises UrlError where it needs an extra."""
    try:
        return import_module(_WITH_TOKENS[mechanism]).token_provider
    except ImportError:
        raise UrlError(f"{mechanism} needs an extra: {install_command('msk')}") from None


def _jaas_options(text: str) -> Iterator[tuple[str, str]]:
    for match in _JAAS_OPTION.finditer(text):
        value = next(group for group in match.groups()[1:] if group is not None)
        yield match[1], re.sub(r"\\(.)", r"\1", value)


def _ssl_context(given: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # with an empty algorithm Kafka's clients do not compare host names
    context.check_hostname = bool(given.get("ssl.endpoint.identification.algorithm", "https"))
    _require_pem(given, "truststore")
    _require_pem(given, "keystore")
    try:
        if given.get("ssl.truststore.certificates"):
            context.load_verify_locations(cadata=given["ssl.truststore.certificates"])
        elif given.get("ssl.truststore.location"):
            context.load_verify_locations(cafile=given["ssl.truststore.location"])
        else:
            context.load_default_certs()
    except (OSError, ValueError) as error:
        raise UrlError(f"ssl.truststore: no PEM certificates: {_without_line(error)}") from None
    if given.get("ssl.keystore.key"):
        raise UrlError(
            "ssl.keystore.key: a key within the properties is not read: put it in a PEM file (ssl.keystore.location)"
        )
    if given.get("ssl.keystore.location"):
        password = given.get("ssl.key.password", "")
        try:
            context.load_cert_chain(given["ssl.keystore.location"], password=lambda: password)
        except (OSError, ValueError) as error:
            reason = "no PEM file with a key and its certificates, or ssl.key.password is wrong"
            raise UrlError(f"ssl.keystore.location: {reason}: {_without_line(error)}") from None
    return context


def _require_pem(given: Mapping[str, str], store: str) -> None:
    location = given.get(f"ssl.{store}.location", "")
    kind = given.get(f"ssl.{store}.type", "PEM" if not location.endswith((".jks", ".p12", ".pfx")) else "JKS").upper()
    if location and kind != "PEM":
        raise UrlError(
            f"ssl.{store}.location: kaudit reads PEM, not {kind}: export the certificates with keytool or openssl and set "
            f"ssl.{store}.type=PEM"
        )


def _without_line(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error)
    return re.sub(r"\s*\(_ssl\.c:\d+\)", "", text)
