"""An S3 server for the tests of a module."""

from collections.abc import Iterator

import pytest

from .object_server import ObjectServer, started


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    """A server without data."""
    with started(tmp_path_factory.mktemp("objects")) as running:
        yield running
