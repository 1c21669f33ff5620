"""A project whose name has a space and a letter outside ASCII."""

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "työ projekti"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def _no_rule_fails(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A rule that fails is passed over and logged: without this a near miss could be missed by a defect."""
    yield
    assert not [record.getMessage() for record in caplog.get_records("call") if "failed" in record.getMessage()]
