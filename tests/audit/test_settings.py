"""Settings of an audit in pyproject.toml."""

from pathlib import Path

import pytest

from retrykit.audit._settings import find_settings
from retrykit.errors import ConfigError

TABLE = "[tool.retrykit.audit]\n"


def write(folder, text):
    (folder / "pyproject.toml").write_text(text)


def test_finds_the_nearest_table(tmp_path):
    inner = tmp_path / "src" / "p"
    inner.mkdir(parents=True)
    write(inner, "[tool.other]")
    write(
        tmp_path,
        TABLE + 'select = ["unbounded"]\nignore = ["no-jitter"]\nexclude = ["tests"]\n'
        'baseline = "known.json"\nper-file-ignores = { "a.py" = ["no-jitter"] }',
    )
    settings = find_settings(inner / "a.py")
    assert settings.root == tmp_path
    assert settings.select == ("unbounded",)
    assert settings.ignore == ("no-jitter",)
    assert settings.exclude == ("tests",)
    assert settings.per_file_ignores == {"a.py": ("no-jitter",)}
    assert settings.baseline == tmp_path / "known.json"


def test_without_a_table_nothing_is_set():
    settings = find_settings(Path("/"))
    assert (settings.root, settings.select, settings.baseline) == (None, None, None)
    assert settings.ignore == settings.exclude == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{TABLE}exlude = []", "got 'exlude'; did you mean exclude?"),
        (f"{TABLE}ignore = ['no-jiter']", "got 'no-jiter'; did you mean no-jitter?"),
        (f"{TABLE}ignore = 'no-jitter'", "ignore must be a list of strings"),
        (f"{TABLE}exclude = [3]", "exclude must be a list of strings, got [3]"),
        (f"{TABLE}baseline = 3", "baseline must be a path, got 3"),
        (f"{TABLE}per-file-ignores = 3", "per-file-ignores must be a table, got 3"),
        (f"{TABLE}per-file-ignores = {{ x = 3 }}", "per-file-ignores of 'x' must be"),
        ("[tool.retrykit]\naudit = 3", "audit must be a table, got 3"),
        ("[tool", "pyproject.toml: "),
    ],
)
def test_a_fault_names_the_file_and_the_key(tmp_path, text, message):
    write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        find_settings(tmp_path)
    assert caught.value.message.startswith(f"{tmp_path}/pyproject.toml")
    assert message in caught.value.message


def test_an_unreadable_file_is_told(tmp_path):
    (tmp_path / "pyproject.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="can't decode"):
        find_settings(tmp_path)
