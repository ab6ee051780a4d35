"""What is asked of a shell: what is wrong is said in a line, with the file, and nothing is done."""

import pytest

from probnb_book.__main__ import COMMANDS, main

WRONG = {
    "keep nothing": "path must be an existing file or folder; found none at",
    "keep folder": "path must have a record",
    "keep short.parquet": "short.parquet cannot be read as a table: it is cut short, or no Parquet",
    "keep ladder/part.parquet": "part.parquet cannot be read as a table",
    "train": "chapter must be one of",
    "train budget --seeds -1": "seed must be an integer of at least 0; got -1",
    "train budget --data-dir nothing": "data_dir must be an existing file or folder",
    "publish": "command must be one of pdf, archive, page",
    "publish page": "page must be given (notebook, page=None); missing a required argument",
    "publish page a b c": "page must be given (notebook, page=None); too many",
    "publish page nothing.ipynb": "notebook must be an .ipynb file; found none at",
    "publish page text.ipynb": "notebook must be one; text.ipynb cannot be read: Notebook does not",
    "publish page bytes.ipynb": "notebook must be one; bytes.ipynb cannot be read: 'utf-8' codec",
    "anywhere VAX": "machines must be one of",
}


@pytest.mark.parametrize("asked", WRONG)
def test_what_is_wrong_is_said_in_a_line(asked, tmp_path, monkeypatch, capsys):
    """It was a traceback, of which the last line named no file."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "ladder").mkdir()
    (tmp_path / "ladder" / "part.parquet").write_bytes(b"")
    (tmp_path / "short.parquet").write_bytes(b"PAR1 and no more")
    (tmp_path / "text.ipynb").write_text("x")
    (tmp_path / "bytes.ipynb").write_bytes(b"\xff\xfe")
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.chdir(tmp_path)
    assert main(asked.split()) == 1
    error = capsys.readouterr().err
    assert WRONG[asked] in error and error.startswith("python -m probnb_book ")
    assert error.count("\n") == 1 and sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("asked", [[], ["x"], ["--help"]])
def test_the_commands_are_told(asked, capsys):
    with pytest.raises(SystemExit) as ended:
        main(asked)
    printed = capsys.readouterr()
    assert ended.value.code == (0 if asked == ["--help"] else 2)
    assert all(name in printed.out + printed.err for name in COMMANDS) or not asked


@pytest.mark.parametrize("name", sorted({*COMMANDS} - {"publish", "train"}))
def test_help_is_told_and_nothing_is_made(name, tmp_path, monkeypatch, capsys):
    """It was taken for a folder of results, which was then made."""
    monkeypatch.chdir(tmp_path)
    for asked in ([name, "--help"], [name, "--nothing"]):
        with pytest.raises(SystemExit) as ended:
            main(asked)
        assert ended.value.code == 2 * (asked[1] != "--help")
    assert f"probnb_book {name}" in capsys.readouterr().out and not [*tmp_path.iterdir()]
