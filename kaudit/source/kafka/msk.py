"""Tokens for Amazon MSK's access control by IAM, signed by Amazon's own library: an extra, which importing this module needs."""

import os
import re
from collections.abc import Mapping

from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
from botocore.exceptions import BotoCoreError, ClientError
from kafka.net.sasl.oauth import AbstractTokenProvider

from kaudit.source.uri import UrlError

_HOST = re.compile(r"\.kafka(?:-serverless)?\.([a-z]{2}(?:-[a-z]+)+-\d)\.amazonaws\.com")


def token_provider(given: Mapping[str, str], jaas: Mapping[str, str]) -> AbstractTokenProvider:
    """Return a provider of tokens that are signed with the credentials of this machine, or of a profile or role.

    Brokers of MSK take them by OAUTHBEARER wherever they take AWS_MSK_IAM. The properties are those of Amazon's Java library
    (aws-msk-iam-auth): `awsProfileName`, `awsRoleArn` and `awsRoleSessionName` in sasl.jaas.config.

    Raises:
        UrlError: nothing names the region.

    """
    host = _HOST.search(given.get("bootstrap.servers", ""))
    region = host[1] if host else os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not region:
        raise UrlError("AWS_MSK_IAM needs the region: in bootstrap.servers, or in AWS_REGION")
    return _SignedTokens(region, jaas)


class _SignedTokens(AbstractTokenProvider):  # type: ignore[misc]  # the library has no types
    """Signs a token whenever a connection logs in; it is valid for 15 minutes."""

    def __init__(self, region: str, jaas: Mapping[str, str]) -> None:
        super().__init__()
        self._region = region
        self._jaas = jaas

    def token(self) -> str:
        """Return a fresh token. Raises UrlError where there are no credentials."""
        signer, profile, role = MSKAuthTokenProvider, self._jaas.get("awsProfileName"), self._jaas.get("awsRoleArn")
        try:
            if role:
                session = self._jaas.get("awsRoleSessionName", "kaudit")
                token, _ = signer.generate_auth_token_from_role_arn(self._region, role, session)
            elif profile:
                token, _ = signer.generate_auth_token_from_profile(self._region, profile)
            else:
                token, _ = signer.generate_auth_token(self._region)
        except AttributeError:  # the signer's, where it finds no credentials
            raise UrlError("AWS_MSK_IAM: no token: no credentials of AWS are found here") from None
        except (BotoCoreError, ClientError, ValueError) as error:
            raise UrlError(f"AWS_MSK_IAM: no token: {type(error).__name__}: {error}") from None
        return str(token)
