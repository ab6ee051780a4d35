import os
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every run, however busy the machine.
settings.register_profile("probnb", deadline=None, derandomize=True, print_blob=False)
settings.load_profile("probnb")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Folder where images and data lie once they are read, of this test alone."""
    monkeypatch.setenv("PROBNB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def data_dir():
    """Folder of the real data; tests that need it skip where it is absent."""
    root = Path(__file__).resolve().parent.parent
    folder = Path(os.environ.get("PROBNB_DATA", root.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("no real data: set PROBNB_DATA to their folder")
    return folder
