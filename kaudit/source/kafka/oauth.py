"""Tokens for SASL/OAUTHBEARER: by the client credentials grant (KIP-768; Kafka's OAuthBearerLoginCallbackHandler), and for Amazon MSK."""

import base64
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from kafka.net.sasl.oauth import AbstractTokenProvider

from kaudit.installation import install_command
from kaudit.source.uri import UrlError

_MSK_HOST = re.compile(r"\.kafka(?:-serverless)?\.([a-z]{2}(?:-[a-z]+)+-\d)\.amazonaws\.com")
_TIMEOUT_SECONDS = 10
_LONGEST_ANSWER = 1 << 20


def token_provider(given: Mapping[str, str], jaas: Mapping[str, str]) -> AbstractTokenProvider:
    """Return a provider that gets tokens from the endpoint that the properties name.

    Raises:
        UrlError: the endpoint, clientId or clientSecret is missing.

    """
    endpoint = given.get("sasl.oauthbearer.token.endpoint.url", "")
    if urlsplit(endpoint).scheme not in ("http", "https") or not jaas.get("clientId") or "clientSecret" not in jaas:
        raise UrlError(
            "OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url (http or https), and clientId and clientSecret in "
            "sasl.jaas.config"
        )
    return _ClientCredentials(endpoint, jaas["clientId"], jaas["clientSecret"], jaas.get("scope", ""))


class _ClientCredentials(AbstractTokenProvider):  # type: ignore[misc]  # the library has no types
    """Asks for a token whenever a connection logs in."""

    def __init__(self, endpoint: str, client_id: str, secret: str, scope: str) -> None:
        super().__init__()
        self._endpoint = endpoint
        self._login = base64.b64encode(f"{client_id}:{secret}".encode()).decode()
        self._scope = scope

    def token(self) -> str:
        """Return a fresh token. Raises UrlError where there is none."""
        form = {"grant_type": "client_credentials", **({"scope": self._scope} if self._scope else {})}
        request = urllib.request.Request(  # noqa: S310 - http and https only
            self._endpoint,
            urlencode(form).encode(),
            {"Authorization": f"Basic {self._login}", "Accept": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310 - as above
                return str(json.loads(answer.read(_LONGEST_ANSWER))["access_token"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            reason = (
                f"{error.code} {error.reason}" if isinstance(error, urllib.error.HTTPError) else type(error).__name__
            )
            raise UrlError(f"sasl.oauthbearer.token.endpoint.url: no token: {reason}") from None


def msk_token_provider(given: Mapping[str, str], jaas: Mapping[str, str]) -> AbstractTokenProvider:
    """Return a provider of tokens that Amazon's library signs with the credentials of this machine, or of a profile or role.

    Brokers of MSK take them by OAUTHBEARER wherever they take AWS_MSK_IAM. The properties are those of Amazon's Java library
    (aws-msk-iam-auth): `awsProfileName`, `awsRoleArn` and `awsRoleSessionName` in sasl.jaas.config.

    Raises:
        UrlError: the library is not installed, or nothing names the region.

    """
    try:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider  # noqa: PLC0415 - an extra
    except ImportError:
        raise UrlError(f"AWS_MSK_IAM needs an extra: {install_command('msk')}") from None
    host = _MSK_HOST.search(given.get("bootstrap.servers", ""))
    region = host[1] if host else os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not region:
        raise UrlError("AWS_MSK_IAM needs the region: in bootstrap.servers, or in AWS_REGION")
    return _MskIam(MSKAuthTokenProvider, region, jaas)


class _MskIam(AbstractTokenProvider):  # type: ignore[misc]  # as above
    """Signs a token whenever a connection logs in; it is valid for 15 minutes."""

    def __init__(self, signer: Any, region: str, jaas: Mapping[str, str]) -> None:  # noqa: ANN401 - the library has no types
        super().__init__()
        self._signer = signer
        self._region = region
        self._jaas = jaas

    def token(self) -> str:
        """Return a fresh token. Raises UrlError where there are no credentials."""
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - an extra, which the signer brings

        profile, role = self._jaas.get("awsProfileName"), self._jaas.get("awsRoleArn")
        try:
            if role:
                session = self._jaas.get("awsRoleSessionName", "kaudit")
                token, _ = self._signer.generate_auth_token_from_role_arn(self._region, role, session)
            elif profile:
                token, _ = self._signer.generate_auth_token_from_profile(self._region, profile)
            else:
                token, _ = self._signer.generate_auth_token(self._region)
        except AttributeError:  # the signer's, where it finds no credentials
            raise UrlError("AWS_MSK_IAM: no token: no credentials of AWS are found here") from None
        except (BotoCoreError, ClientError, ValueError) as error:
            raise UrlError(f"AWS_MSK_IAM: no token: {type(error).__name__}: {error}") from None
        return str(token)
