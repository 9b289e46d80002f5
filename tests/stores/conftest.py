"""Object stores for the tests of a module."""

from collections.abc import Iterator

import pytest

from . import azurite, object_server
from .azurite import AzureServer
from .object_server import ObjectServer

Server = ObjectServer | AzureServer


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    """A server of S3 without data."""
    with object_server.started(tmp_path_factory.mktemp("objects")) as running:
        yield running


@pytest.fixture(scope="module", params=[object_server.started, azurite.started], ids=["S3", "ADLS"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """Servers of each API, without data."""
    with request.param(tmp_path_factory.mktemp("objects")) as running:
        yield running
