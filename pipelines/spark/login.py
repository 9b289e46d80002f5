"""What a session's JVM needs so that Spark's Kafka source can log in."""

import os
from collections.abc import Callable, Mapping
from importlib import resources

from quotaflow.pipelines.config import KafkaSection, SparkSection, logins, secrets
from quotaflow.pipelines.spark import jars, session

_KERBEROS_CONF = "java.security.krb5.conf"
_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
_JARS = "spark.jars"
_MECHANISM = "sasl.mechanism"
_NEEDED = (_MECHANISM, logins.TOKEN_URL)


def section(
    spark: SparkSection, kafka: KafkaSection, progress: Callable[[str], None] = lambda _: None
) -> SparkSection:
    """Conf's section `spark` for a session that reads topics, with what the login needs in Java.

    A session that runs already (Databricks, Spark Connect) is not changed: there they are set where
    it starts. Raises ConfigError for a reference that cannot be looked up, JarError and
    MissingToolError as `jars.spark_jars` does.
    """
    if session.owner() is not None:
        return spark
    # Secrets are not looked up: jobs that read tables alone run without them.
    properties = {
        key: secrets.look_up(key, kafka.properties[key])
        for key in _NEEDED
        if key in kafka.properties
    }
    given, system = dict(spark.conf), _system_properties(properties)
    for key in _OPTIONS if system else ():
        # A folder's name may have a blank.
        written = " ".join(f'"-D{name}={value}"' for name, value in system.items())
        given[key] = f"{written} {given.get(key, '')}".strip()
    if properties.get(_MECHANISM) == logins.IAM:
        own = jars.jar_set("msk-iam-jars", resources.files("quotaflow.conf"), progress)
        given[_JARS] = ",".join([*filter(None, [given.get(_JARS)]), *map(str, own)])
    return spark.model_copy(update={"conf": given})


def _system_properties(properties: Mapping[str, str]) -> dict[str, str]:
    mechanism = properties.get(_MECHANISM)
    if mechanism == logins.OAUTH:
        return {logins.ALLOWED_URLS: properties[logins.TOKEN_URL]}
    if mechanism == logins.KERBEROS and "KRB5_CONFIG" in os.environ:
        # The variable of the C library, which kafka-python uses. Java has a property for one.
        return {_KERBEROS_CONF: os.environ["KRB5_CONFIG"].partition(":")[0]}
    return {}
