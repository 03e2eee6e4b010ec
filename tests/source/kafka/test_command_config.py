import base64
import pickle
import ssl
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from kaudit.source.kafka.command_config import load_settings, settings_of
from kaudit.source.uri import UrlError

SECRET = "pass;word"
LOGIN = (
    f'org.apache.kafka.common.security.scram.ScramLoginModule required \\\n    username="alice" password="{SECRET}" ;'
)

OAUTH = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/",
}


def written(tmp_path, text: str) -> str:
    path = tmp_path / "client.properties"
    path.write_text(text)
    return str(path)


def test_scram(tmp_path):
    text = f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config={LOGIN}\n"
    options = load_settings(written(tmp_path, text)).options
    assert (options["sasl_plain_username"], options["sasl_plain_password"]) == ("alice", SECRET)
    assert (options["security_protocol"], options["sasl_mechanism"]) == ("SASL_PLAINTEXT", "SCRAM-SHA-512")


@pytest.mark.parametrize(
    ("given", "service"),
    [
        ({}, "kafka"),
        ({"sasl.jaas.config": 'X required serviceName="broker";'}, "broker"),
        ({"sasl.jaas.config": 'X required serviceName="a";', "sasl.kerberos.service.name": "b"}, "b"),
    ],
)
def test_kerberos_is_the_default_mechanism_and_its_service_kafka(given, service):
    options = settings_of(given | {"security.protocol": "SASL_PLAINTEXT"}).options
    assert (options["sasl_mechanism"], options["sasl_kerberos_service_name"]) == ("GSSAPI", service)


def test_an_escape_that_java_refuses_is_refused(tmp_path):
    path = written(tmp_path, "sasl.jaas.config=\\user")
    with pytest.raises(UrlError, match=r"not a property file: malformed escape \\user"):
        load_settings(path)


def test_a_client_id_is_sent_where_one_is_given():
    assert settings_of({"client.id": "audit"}).options["client_id"] == "audit"
    assert "client_id" not in settings_of({"client.id": ""}).options


@pytest.mark.parametrize("scope", ["", "audit"])
def test_tokens_come_by_the_client_credentials_grant(scope):
    """RFC 6749, 4.4: the client's id and secret are the basic authentication of a form."""
    asked = []

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            asked.append((self.headers["Authorization"], parse_qs(body)))
            self.send_response(200 if len(asked) == 1 else 401)
            self.end_headers()
            self.wfile.write(b'{"access_token": "abc"}' if len(asked) == 1 else b"no")

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Endpoint) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}/token"
        login = f'X required clientId="me" clientSecret="{SECRET}" scope="{scope}";'
        given = OAUTH | {"sasl.oauthbearer.token.endpoint.url": endpoint, "sasl.jaas.config": login}
        provider = settings_of(given).options["sasl_oauth_token_provider"]
        assert provider.token() == "abc"
        with pytest.raises(UrlError, match=r"no token: 401 Unauthorized$"):
            provider.token()
        server.shutdown()
    with pytest.raises(UrlError, match=r"no token: URLError$"):
        provider.token()
    form = {"grant_type": ["client_credentials"]} | ({"scope": [scope]} if scope else {})
    assert asked[0] == ("Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode(), form)


MSK = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "AWS_MSK_IAM",
    "bootstrap.servers": "b-1.c.abc123.c2.kafka.eu-central-1.amazonaws.com:9098",
}


@pytest.fixture
def aws(monkeypatch, tmp_path):
    """Credentials of two users, of the environment and of a profile, and nothing else of this machine's."""
    (tmp_path / "credentials").write_text("[auditor]\naws_access_key_id=AKIDPROFILE\naws_secret_access_key=s\n")
    variables = {
        "AWS_ACCESS_KEY_ID": "AKIDVARIABLE",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    return monkeypatch


@pytest.mark.parametrize(
    ("login", "user"), [("", "AKIDVARIABLE"), ('awsProfileName="auditor"', "AKIDPROFILE")], ids=["variables", "profile"]
)
def test_tokens_for_msk_are_signed_for_its_region(aws, login, user):
    """The token is a signed request of the action kafka-cluster:Connect, in base64 without padding (README of Amazon's signer)."""
    settings = settings_of(MSK | {"sasl.jaas.config": f"software.amazon.msk.auth.iam.IAMLoginModule required {login};"})
    assert settings.options["sasl_mechanism"] == "OAUTHBEARER"
    url = urlsplit(base64.urlsafe_b64decode(settings.options["sasl_oauth_token_provider"].token() + "==").decode())
    asked = parse_qs(url.query)
    assert (url.hostname, asked["Action"]) == ("kafka.eu-central-1.amazonaws.com", ["kafka-cluster:Connect"])
    key, _, region, service, _ = asked["X-Amz-Credential"][0].split("/")
    assert (key, region, service) == (user, "eu-central-1", "kafka-cluster")


def test_msk_without_a_region_or_credentials(aws):
    elsewhere = MSK | {"bootstrap.servers": "broker:9098"}
    with pytest.raises(UrlError, match=r"needs the region: in bootstrap.servers, or in AWS_REGION"):
        settings_of(elsewhere)
    aws.setenv("AWS_REGION", "us-east-1")
    aws.delenv("AWS_ACCESS_KEY_ID")
    provider = settings_of(elsewhere).options["sasl_oauth_token_provider"]
    with pytest.raises(UrlError, match=r"^AWS_MSK_IAM: no token: "):
        provider.token()
    unknown = settings_of(MSK | {"sasl.jaas.config": 'X required awsProfileName="nobody";'})
    with pytest.raises(UrlError, match="no token: ProfileNotFound"):
        unknown.options["sasl_oauth_token_provider"].token()
    aws.delitem(sys.modules, "kaudit.source.kafka.msk")
    aws.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    with pytest.raises(UrlError, match=r"^AWS_MSK_IAM needs an extra: .*msk"):
        settings_of(MSK)


def test_secrets_are_not_shown_and_not_pickled():
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": LOGIN}
    settings = settings_of(given | {"bootstrap.servers": "a:1"})
    assert settings.bootstrap_servers == "a:1"
    assert SECRET not in f"{settings!r}{settings}"
    with pytest.raises(TypeError, match="secrets"):
        pickle.dumps(settings)


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"security.protocol": "TLS"}, "security.protocol is TLS"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM"}, "sasl.mechanism is SCRAM"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, 'needs username="..." password="..."'),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": 'X required username="a";'}, "needs username"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "/x/trust.jks"}, "reads PEM, not JKS"),
        ({"security.protocol": "SSL", "ssl.keystore.location": "/x", "ssl.keystore.type": "PKCS12"}, "not PKCS12"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "/no/such.pem"}, "no PEM certificates"),
        ({"security.protocol": "SSL", "ssl.keystore.location": "/no/such.pem"}, "ssl.keystore.location"),
        ({"security.protocol": "SSL", "ssl.truststore.certificates": "abc"}, "no PEM certificates"),
        ({"security.protocol": "SSL", "ssl.keystore.key": "abc"}, "put it in a PEM file"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, "sasl.oauthbearer.token.endpoint.url"),
        (OAUTH | {"sasl.oauthbearer.token.endpoint.url": "ftp://x/"}, "http or https"),
        (OAUTH | {"sasl.jaas.config": 'X required clientId="me";'}, "clientSecret in"),
        (OAUTH | {"sasl.jaas.config": f'X required clientSecret="{SECRET}";'}, "clientId and"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_one_sentence_without_secrets(properties, sentence):
    login = {"sasl.jaas.config": f'X required password="{SECRET}";'}
    with pytest.raises(UrlError) as raised:
        settings_of(login | properties)
    assert sentence in str(raised.value)
    assert SECRET not in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"\xff\xfe", "not UTF-8"), (b"a=" + b"x" * (2 << 20), "more than 1 MiB"), (None, "No such")],
)
def test_files_that_are_no_properties(tmp_path, content, sentence):
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UrlError, match=sentence):
        load_settings(str(path))


@pytest.mark.parametrize("store", ["truststore", "keystore"])
def test_the_type_of_a_store_that_is_not_named_does_not_matter(store):
    given = {"security.protocol": "SSL", f"ssl.{store}.type": "JKS"}
    context = settings_of(given).options["ssl_context"]
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)


def test_tls_with_a_key_of_its_own(tmp_path):
    pem = tmp_path / "client.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -out cert -keyout key"
    subprocess.run(command.split(), check=True, cwd=tmp_path, capture_output=True)
    pem.write_bytes((tmp_path / "key").read_bytes() + (tmp_path / "cert").read_bytes())
    given = {"security.protocol": "SSL", "ssl.keystore.location": str(pem), "ssl.truststore.location": str(pem)}
    context = settings_of(given | {"ssl.endpoint.identification.algorithm": ""}).options["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    assert not context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert [own["subject"] for own in context.get_ca_certs()] == [((("commonName", "localhost"),),)]
