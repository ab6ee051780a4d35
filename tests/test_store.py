"""Files of finished work: whole or not at all, and readable by whoever may read."""

import os
import subprocess
import sys
import tempfile

import numpy as np
import pandas as pd
import pytest
import torch

from probnb import store


def test_the_store_reads_only_what_it_wrote(tmp_path):
    store.save(tmp_path / "a", {"x": torch.arange(3)}, {"loss": float("inf")})
    tensors, meta = store.load(tmp_path / "a")
    assert tensors["x"].tolist() == [0, 1, 2]
    assert meta == {"loss": float("inf"), "sha256": store.header(tmp_path / "a")["sha256"]}
    with pytest.raises(FileNotFoundError, match="does not exist"):
        store.load(tmp_path / "b")
    (tmp_path / "b").write_bytes(b"not safetensors at all")
    with pytest.raises(ValueError, match="written by probnb"):
        store.load(tmp_path / "b")
    with pytest.raises(RuntimeError):
        store.replace_file(tmp_path / "c", half)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


def half(path):
    path.write_text("half")
    raise RuntimeError("killed while writing")


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_finished_files_have_the_modes_that_the_umask_gives(tmp_path, umask, mode):
    """safetensors writes for the owner alone, so that no other user could read a result."""
    frame = pd.DataFrame({"x": [1.0]})
    before = os.umask(umask)
    try:
        store.save(tmp_path / "runs" / "fit", {"x": torch.zeros(2)}, {})
        store.replace_file(tmp_path / "table.parquet", frame.to_parquet)
        found = {p.name: p.stat().st_mode & 0o777 for p in tmp_path.rglob("*") if p.is_file()}
    finally:
        os.umask(before)
    assert len(found) == 2 and set(found.values()) == {mode}, found


@pytest.mark.skipif(not hasattr(os, "setuid") or os.getuid() != 0, reason="needs two users")
def test_what_one_user_makes_another_reads():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        store.save(f"{folder}/runs/fit", {"x": torch.arange(3)}, {})
        code = f"import os; os.setuid(65534); open('{folder}/runs/fit', 'rb').read()"
        assert subprocess.run([sys.executable, "-S", "-c", code], cwd="/").returncode == 0


def test_two_writers_of_one_number_do_not_share_a_file(tmp_path, monkeypatch):
    """Containers on one volume may have equal process numbers."""
    seen = []
    monkeypatch.setattr(os, "getpid", lambda: 7)
    for _ in range(2):
        store.replace_file(tmp_path / "x", lambda file: (seen.append(file), file.write_text("x")))
    assert len({*seen}) == 2 and [*tmp_path.iterdir()] == [tmp_path / "x"]


def test_tensors_that_share_their_bytes_are_stored_each(tmp_path):
    """Tied weights, views, transposed, expanded, channels last: all read back as they were."""
    base = torch.arange(24.0).reshape(2, 3, 4)
    tensors = {
        "base": base,
        "tied": base,
        "view": base[0],
        "turned": base.mT,
        "expanded": torch.ones(1).expand(5),
        "last": torch.rand(2, 3, 4, 4).to(memory_format=torch.channels_last),
        "parameter": torch.nn.Parameter(base),
        "none": base[:0],
    }
    store.save(tmp_path / "x", tensors, {})
    found, _ = store.load(tmp_path / "x")
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"word": ["x", None]}),
        pd.DataFrame({"none": np.array([], float)}),
        pd.DataFrame({"p": [1.5, np.nan, -0.0, np.inf], "n": pd.array([1, None, 2, 3], "Int64")}),
        pd.DataFrame({"single": np.float32([0.1, 1e-40]), "kind": pd.Categorical(["u", "v"])}),
    ],
)
def test_a_table_comes_back_as_it_was(tmp_path, table):
    store.write_table(tmp_path / "t.parquet", table)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "t.parquet"), table, check_exact=True)
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def test_links_stay_and_pipes_are_written_to(tmp_path):
    """Either became a file of its own: as root, /dev/null too."""
    (tmp_path / "link").symlink_to("folder/file")
    store.replace_file(tmp_path / "link", lambda path: path.write_text("x"))
    assert (tmp_path / "link").is_symlink() and (tmp_path / "folder" / "file").read_text() == "x"
    os.mkfifo(tmp_path / "pipe")
    with open(os.open(tmp_path / "pipe", os.O_RDWR), "rb", 0) as pipe:
        store.replace_file(tmp_path / "pipe", lambda path: path.write_text("x"))
        assert pipe.read(1) == b"x" and (tmp_path / "pipe").is_fifo()
