"""The distribution: its name, its version, its files and how it is installed."""

import re
import shlex
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import retrykit
from retrykit._internal.distribution import INSTALL, NAME, installed_by
from retrykit._internal.version import UNKNOWN, version_of

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_messages_name_the_distribution_of_the_project():
    assert PROJECT["name"] == NAME


def test_the_version_is_that_of_the_distribution():
    assert retrykit.__version__ == metadata.version(NAME)


def test_a_distribution_that_is_not_installed_has_an_unknown_version():
    assert version_of("no-such-distribution") == UNKNOWN


def test_an_import_reads_no_version():
    code = "import sys, retrykit; sys.exit('importlib.metadata' in sys.modules)"
    command = [sys.executable, "-I", "-c", code]
    assert subprocess.run(command, check=False).returncode == 0  # noqa: S603  a fixed command


def test_the_license_and_the_types_are_installed():
    installed = {path.name for path in metadata.files(NAME)}
    assert "LICENSE" in installed
    assert (Path(retrykit.__file__).parent / "py.typed").is_file()


def test_the_line_that_installs_is_that_of_a_clone_or_of_the_index():
    """It is that of a clone until the first release."""
    index = f"pip install '{NAME}{{extras}}'"
    assert INSTALL in {"in a clone: pip install '.{extras}'", index}
    assert installed_by("cli") == INSTALL.format(extras="[cli]")


def own_targets(text):
    """Yield how a page names this project to ``pip install``, and its extras.

    Who changes the project installs it by ``-e``, before and after a release.
    """
    for line in re.findall(r"pip install ([^`\n]+)", text):
        words = shlex.split(line, comments=True)
        for before, word in zip(["", *words], words, strict=False):
            name, extras = re.fullmatch(r"([^\[]*)(\[.*\])?", word).groups()
            if before != "-e" and name in {".", NAME, "retrykit"}:
                yield name, extras or ""


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_installs_the_project_as_messages_do(path):
    [target] = re.findall(r"'(.*)\{extras\}'", INSTALL)
    for name, extras in own_targets(path.read_text("utf-8")):
        assert name == target
        assert {*re.findall(r"[\w-]+", extras)} <= {*PROJECT["optional-dependencies"]}


def test_the_lines_that_install_are_found():
    text = "`pip install '.[cli]' x`, `pip install -e .`\npip install retrykit  # all"
    assert [*own_targets(text)] == [(".", "[cli]"), ("retrykit", "")]
    found = sum(len([*own_targets(path.read_text("utf-8"))]) for path in PAGES)
    assert found > 9
