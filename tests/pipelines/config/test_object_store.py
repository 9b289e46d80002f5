"""`warehouse.path` of an object store: what is taken, and the nearest right text of what is not."""

import re

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.warehouse import place

from ...cases import cases

CHECKPOINTS = "warehouse.checkpoints=/var/lib/quotaflow/checkpoints"


def load(*pairs: str) -> Conf:
    return config.load(overrides=list(pairs))


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("s3://bucket/prefix", "s3://bucket/prefix"),
        ("s3://bucket/env=prod/wh/", "s3://bucket/env=prod/wh"),
        ("gs://bucket/a/b", "gs://bucket/a/b"),
        (
            "abfss://tables@account.dfs.core.windows.net/wh",
            "abfss://tables@account.dfs.core.windows.net/wh",
        ),
    ],
)
def test_a_prefix_of_an_object_store_is_a_place(path: str, key: str) -> None:
    section = load(f"warehouse.path={path}", CHECKPOINTS).warehouse
    assert (section.is_store, section.location) == (True, key)
    assert str(section.state_folder) == "/var/lib/quotaflow/checkpoints"


BLOB = "acct.blob.core.windows.net"
AZURE = "abfss://tables@acct.dfs.core.windows.net"


@pytest.mark.parametrize("path", ["/data/wh", "relative/wh", "~/wh", "/data/a:b", "a:b/c"])
def test_a_folder_stays_one(path: str) -> None:
    assert not load(f"warehouse.path={path}").warehouse.is_store


@cases(
    ("path", "message"),
    ("Hadoop's name", "s3a://b-b/wh", "write s3://b-b/wh$"),
    ("one slash and Hadoop's name", "s3a:/b-b/wh", "write s3://b-b/wh$"),
    ("one slash", "s3:/b-b/wh", "write s3://b-b/wh$"),
    ("capitals", "S3://b-b/wh", "write s3://b-b/wh$"),
    ("another name of Google's", "gcs://b-b/wh", "write gs://b-b/wh$"),
    ("a typing error", "s4://b-b/wh", "a folder, or s3://BUCKET/PREFIX"),
    ("a web address", "http://b-b/wh", "a folder, or s3://BUCKET/PREFIX, gs:"),
    ("Azure's driver for blobs", f"wasbs://tables@{BLOB}/qf", f"write {AZURE}/qf$"),
    ("without TLS", f"wasb://tables@{BLOB}/qf", f"write {AZURE}/qf$"),
    ("blobs' host", f"abfss://tables@{BLOB}/qf", f"write {AZURE}/qf$"),
    ("an account alone", "abfs://tables@acct/qf", f"write {AZURE}/qf$"),
    (
        "a container alone",
        "az://tables/qf",
        "no storage account: write abfss://tables@ACCOUNT.dfs.core.windows.net/qf, with",
    ),
    ("Azure's address", f"https://{BLOB}/tables/qf", f"write {AZURE}/qf$"),
    ("Amazon's address", "https://b-b.s3.eu-west-1.amazonaws.com/wh", "write s3://b-b/wh$"),
    ("Amazon's other address", "https://s3.amazonaws.com/b-b/wh", "write s3://b-b/wh$"),
    ("Google's address", "https://storage.googleapis.com/b-b/wh", "write gs://b-b/wh$"),
    ("Hadoop's name and no prefix", "s3a://b-b", "write s3://b-b/quotaflow"),
    ("Hadoop's name and capitals", "s3a://Bucket/wh", "has no bucket that can be"),
    ("no prefix", "s3://b-b", "write s3://b-b/quotaflow"),
    ("an empty part", "s3://b-b/a//b", "prefix of letters"),
    ("a query", "s3://b-b/a?x=1", "prefix of letters"),
    ("a login", "s3://u:p@b-b/x", "has no bucket that can be"),
    ("no host of Azure", "abfss://c@a/x", "abfss://CONTAINER@ACCOUNT.dfs"),
    ("a volume", "/Volumes/main/q/files", "volume of Databricks"),
)
def test_another_path_is_refused_with_the_nearest_right_one(path: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(f"warehouse.path={path}", CHECKPOINTS)


@cases(
    ("pairs", "message"),
    ("no checkpoints", [], "checkpoints is needed beside path s3://b-b/wh"),
    ("there too", ["warehouse.checkpoints=s3://b-b/cp"], "a lock there excludes"),
    (
        "a literal secret",
        [CHECKPOINTS, "warehouse.store.secret_access_key=hunter2"],
        "secret_access_key holds a secret in plain text: write env:NAME",
    ),
    ("a typo", [CHECKPOINTS, "warehouse.store.regoin=eu-west-1"], "did you mean region"),
    ("Azure's", [CHECKPOINTS, "warehouse.store.account_key=env:K"], "no option of this"),
    ("no URL", [CHECKPOINTS, "warehouse.store.endpoint=minio:9000"], "write https://HOST"),
)
def test_wrong_options_of_a_store_are_refused(pairs: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        load("warehouse.path=s3://b-b/wh", *pairs)
    assert "hunter2" not in str(raised.value)


def test_a_folder_has_no_options_of_a_store() -> None:
    with pytest.raises(ConfigError, match="path names none"):
        load("warehouse.path=/data", "warehouse.store.region=eu-west-1")


def test_secrets_are_looked_up_late_and_are_in_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    conf = load(
        "warehouse.path=s3://b-b/wh", CHECKPOINTS, "warehouse.store.secret_access_key=env:KEY"
    )
    with pytest.raises(
        ConfigError, match=r"warehouse\.store\.secret_access_key: .* KEY is not set"
    ):
        conf.warehouse.object_store()
    monkeypatch.setenv("KEY", "hunter2")
    store = conf.warehouse.object_store()
    assert dict(store.options)["secret_access_key"] == "hunter2"
    assert "hunter2" not in f"{store!r} {store} {conf!r}"


def test_an_emulator_of_azure_has_the_account_in_its_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "a2V5")
    conf = load(
        "warehouse.path=abfss://tables@account.dfs.core.windows.net/wh",
        CHECKPOINTS,
        "warehouse.store.account_key=env:KEY",
        "warehouse.store.endpoint=http://127.0.0.1:10000/",
    )
    options = place.delta_rs_options(conf.warehouse.object_store())
    assert options["azure_storage_endpoint"] == "http://127.0.0.1:10000/account"
    assert options["allow_http"] == "true"


@pytest.mark.parametrize("host", ["b-b", "tables@acct", f"tables@{BLOB}", "Tables@acct", "x@y@z"])
@pytest.mark.parametrize("key", ["", "/", "/wh", "/a/b/", "/a//b"])
@pytest.mark.parametrize(
    "scheme", ["s3a", "S3", "gcs", "abfs", "wasb", "wasbs", "az", "adl", "azure"]
)
def test_what_an_error_says_to_write_can_be_written(scheme: str, host: str, key: str) -> None:
    with pytest.raises(ConfigError) as error:
        load(f"warehouse.path={scheme}://{host}{key}", CHECKPOINTS)
    path = re.search(r"write (\S+?)[,;]?(?:\s|$)", str(error.value))
    # Capitals stand for what the user knows.
    if path is not None and not re.search("[A-Z]{3}", path[1]):
        assert load(f"warehouse.path={path[1]}", CHECKPOINTS).warehouse.is_store
