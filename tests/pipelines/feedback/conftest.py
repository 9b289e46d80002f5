"""Every test has a home and a topic of leases of its own."""

from pathlib import Path

import pytest

from quotaflow.pipelines.feedback import exclusive_section

from .fake_configs import file_leases


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Quotaflow's home, where the key of records is made."""
    monkeypatch.setenv("QUOTAFLOW_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(exclusive_section, "open_leases", file_leases)
    return tmp_path / "home"
