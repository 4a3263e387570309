"""A migrated file keeps to the style of its project: widths, imports, names."""

import pytest

from retrykit.migrate import migrate_paths, migrate_text

BEFORE = """\
import tenacity


class Client:
    @tenacity.retry(
        wait=tenacity.wait_exponential(multiplier=FIRST_DELAY, min=SHORT, max=LONG)
    )
    def fetch(self): ...
"""
ON_ONE_LINE = "schedule=exponential(FIRST_DELAY).cap(LONG).at_least(SHORT)"


def widest(text):
    return max(map(len, text.splitlines()))


def after(folder, name="", settings=""):
    if name:
        (folder / name).write_text(settings)
    (folder / "src").mkdir()
    (folder / "src" / "a.py").write_text(BEFORE)
    [file] = migrate_paths([folder]).files
    return file.migration.after


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("pyproject.toml", "[tool.ruff]\nline-length = 60"),
        ("pyproject.toml", "[tool.black]\nline-length = 60"),
        ("ruff.toml", "line-length = 60"),
        (".ruff.toml", "line-length = 60"),
        ("setup.cfg", "[flake8]\nmax-line-length = 60"),
        (".flake8", "[flake8]\nmax_line_length = 60"),
    ],
    ids=str,
)
def test_no_line_is_longer_than_the_project_allows(tmp_path, name, settings):
    text = after(tmp_path, name, settings)
    assert (
        "        schedule=exponential(FIRST_DELAY)\n"
        "        .cap(LONG)\n"
        "        .at_least(SHORT),\n"
    ) in text
    assert widest(text) <= 60


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("", ""),
        ("pyproject.toml", "[tool.ruff]"),
        ("pyproject.toml", "broken ["),
        ("tox.ini", "[flake8]"),
        ("tox.ini", "[flake8]\nmax-line-length = many"),
        ("tox.ini", "[testenv]"),
        ("tox.ini", "broken"),
    ],
    ids=str,
)
def test_settings_without_a_width_mean_the_default_of_their_tool(
    tmp_path, name, settings
):
    text = after(tmp_path, name, settings)
    assert ON_ONE_LINE in text
    assert 60 < widest(text) <= 79


def test_a_call_is_on_one_line_where_long_lines_are_allowed(tmp_path):
    text = after(tmp_path, "ruff.toml", "line-length = 160")
    assert f"@retry(on=Exception, max_attempts=None, {ON_ONE_LINE})" in text


def test_a_call_of_several_lines_is_spread_if_a_line_is_too_long():
    text = (
        "import logging\nimport tenacity\n\nLOG = logging.getLogger()\n\n\n"
        "def make(rate, interval):\n    def decorate(function):\n"
        "        return tenacity.retry(\n            wait=tenacity.wait_exponential(\n"
        "                multiplier=interval, min=0, exp_base=rate),\n"
        "            after=tenacity.after_log(LOG, logging.DEBUG))(function)\n"
        "    return decorate\n"
    )
    found = migrate_text(text).after
    assert "multiplier=interval, min=0, exp_base=rate),\n" in found
    assert widest(found) <= 88


@pytest.mark.parametrize(
    ("usage", "kept"),
    [
        (
            "@tenacity.retry(wait=tenacity.wait_exponential(exp_base=rate))",
            "wait(tenacity.wait_exponential(exp_base=rate))",
        ),
        ("@backoff.on_exception(backoff.expo, OSError, base=rate)", "@backoff"),
        ("@stamina.retry(on=OSError, wait_exp_base=rate)", "@stamina"),
    ],
    ids=["tenacity", "backoff", "stamina"],
)
def test_delays_that_may_become_shorter_are_not_those_of_retrykit(usage, kept):
    library = usage.strip("@").partition(".")[0]
    text = f"import {library}\n\n\ndef make(rate):\n    {usage}\n    def f(): ..."
    found = migrate_text(f"{text}\n").after
    assert kept in found
    assert "exponential(1" not in found


OURS = "from retrykit import retry\nfrom retrykit.schedules import constant"
USAGE = "\n\n@tenacity.retry\ndef fetch(): ...\n"


@pytest.mark.parametrize(
    "lines",
    [
        ["import requests", "import tenacity", "OURS", "from stevedore import driver"],
        ["import tenacity", "OURS", "from stevedore import driver", "import zope"],
        ["import zope", "OURS", "import tenacity", "import requests"],
    ],
    ids=["imports first", "by module", "not sorted"],
)
def test_imports_are_in_the_order_of_the_file(lines):
    before = "\n".join(line for line in lines if line != "OURS")
    expected = "\n".join(line for line in lines if line != "import tenacity")
    found = migrate_text(f"{before}\n{USAGE}").after
    assert found.startswith(expected.replace("OURS", OURS))


def test_another_name_for_a_class_looks_like_one():
    text = (
        "import tenacity\n\nRetryError = None\n\n\n"
        "@tenacity.retry(stop=tenacity.stop_after_attempt(3))\ndef fetch(): ...\n\n\n"
        "try:\n    fetch()\nexcept tenacity.RetryError:\n    pass\n"
    )
    assert "RetryError as RetrykitRetryError" in migrate_text(text).after
