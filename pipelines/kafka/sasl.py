"""The SASL logins of kafka-python, from the properties of Java's client."""

import os
import re
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any

from kafka.net.sasl import register_sasl_mechanism
from kafka.net.sasl.gssapi import SaslMechanismGSSAPI
from kafka.net.sasl.msk import AwsMskIamClient, SaslMechanismAwsMskIam

from quotaflow.pipelines import extras
from quotaflow.pipelines.config import logins
from quotaflow.pipelines.errors import ConfigError, KafkaError, MissingToolError
from quotaflow.pipelines.kafka.oauth import ClientCredentials

_CACHE = "MEMORY:quotaflow"
_REGION = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$", re.I)


def options(properties: Mapping[str, str]) -> dict[str, Any]:
    """How to log in, as kafka-python takes it; properties as Java takes them, secrets looked up.

    Raises MissingToolError without the package that a login needs, ConfigError or KafkaError for a
    login that is refused before any broker is asked.
    """
    mechanism = properties["sasl.mechanism"]
    taken = logins.module_options(properties.get(logins.JAAS, ""))
    if mechanism == logins.OAUTH:
        if not {"clientId", "clientSecret"} <= taken.keys():
            raise ConfigError(f"{logins.JAAS} needs clientId and clientSecret")
        provider = ClientCredentials(properties[logins.TOKEN_URL], taken)
        return {"sasl_mechanism": mechanism, "sasl_oauth_token_provider": provider}
    if mechanism == logins.KERBEROS:
        _need("gssapi", mechanism, "kerberos")
        login = partial(Kerberos, _tickets(taken.get("keyTab"), taken.get("principal")))
        # kafka-python takes neither by its options, and finds a mechanism by its name.
        register_sasl_mechanism(mechanism, login, overwrite=True)
        service = properties[logins.SERVICE_NAME]
        return {"sasl_mechanism": mechanism, "sasl_kerberos_service_name": service}
    if mechanism == logins.IAM:
        _need("botocore", mechanism, "iam")
        _check_identity()
        register_sasl_mechanism(mechanism, MskIam, overwrite=True)
        return {"sasl_mechanism": mechanism}
    return {
        "sasl_mechanism": mechanism,
        "sasl_plain_username": taken.get("username", ""),
        "sasl_plain_password": taken.get("password", ""),
    }


class Kerberos(SaslMechanismGSSAPI):
    """A login with given credentials. kafka-python alone takes the user's own tickets only."""

    def __init__(self, credentials: Any, **config: Any) -> None:
        import gssapi  # noqa: PLC0415  optional

        self._is_done = self._is_authenticated = False
        self.auth_id = f"{config['sasl_kerberos_service_name']}@{config['host']}"
        service = gssapi.Name(self.auth_id, name_type=gssapi.NameType.hostbased_service)
        self.gssapi_name = service.canonicalize(gssapi.MechType.kerberos)
        self._client_ctx = gssapi.SecurityContext(
            name=self.gssapi_name, creds=credentials, usage="initiate"
        )
        self._next_token = self._client_ctx.step(None)


def _tickets(keytab: str | None, principal: str | None) -> Any:
    """Credentials by a keytab, as Java's Krb5LoginModule gets them, or else the user's own.

    With a keytab new tickets are fetched when these expire. Raises KafkaError without a ticket.
    """
    import gssapi  # noqa: PLC0415  optional

    name = principal and gssapi.Name(principal, name_type=gssapi.NameType.kerberos_principal)
    store = {"client_keytab": f"FILE:{keytab}", "ccache": _CACHE} if keytab else None
    try:
        credentials = gssapi.Credentials(name=name or None, usage="initiate", store=store)
        # Only now is the KDC asked.
        _ = credentials.lifetime
    except gssapi.exceptions.GSSError as error:
        named = f" for {principal}" if principal else ""
        raise KafkaError(f"no Kerberos ticket{named}: {' '.join(str(error).split())}") from None
    return credentials


class MskIam(SaslMechanismAwsMskIam):
    """AWS_MSK_IAM with the region that the broker's name has, as AWS's own login module takes it.

    kafka-python alone takes the region of the process, and fails without one.
    """

    def _build_client(self) -> AwsMskIamClient:
        session = self._boto_session_cls()
        credentials = session.get_credentials().get_frozen_credentials()
        return AwsMskIamClient(
            host=self.host,
            access_key=credentials.access_key,
            secret_key=credentials.secret_key,
            # AWS's library for Java reads the second variable, and botocore the first alone.
            region=region(self.host)
            or session.get_config_variable("region")
            or os.environ.get("AWS_REGION", ""),
            token=credentials.token,
        )


def region(host: str) -> str | None:
    """The AWS region in the name of an MSK broker; None for another name."""
    match = _REGION.search(host)
    return match[1] if match else None


def _check_identity() -> None:
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415  optional
    from botocore.session import Session  # noqa: PLC0415  optional

    try:
        credentials = Session().get_credentials()
    except BotoCoreError as error:
        raise ConfigError(f"{logins.IAM}: AWS credentials cannot be read: {error}") from None
    if credentials is None:
        raise ConfigError(
            f"{logins.IAM} finds no AWS credentials: set AWS_PROFILE or AWS_ACCESS_KEY_ID, or run "
            "with a role of the instance, container or service account"
        )


def _need(package: str, mechanism: str, extra: str) -> None:
    if find_spec(package) is None:
        raise MissingToolError(f"{mechanism} needs package {package}: {extras.install(extra)}")
