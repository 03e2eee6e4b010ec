"""Tokens for SASL/OAUTHBEARER by the client credentials grant (KIP-768; Kafka's OAuthBearerLoginCallbackHandler)."""

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit

from kafka.net.sasl.oauth import AbstractTokenProvider

from kaudit.source.uri import UrlError

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
