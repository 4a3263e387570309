"""The changelog has its sections, and a release finds its own."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CHANGELOG.md").read_text("utf-8")
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
RELEASED = """\
## [Unreleased]

## [1.10.0] - 2026-12-01

### Added

- This.

## [1.1.0] - 2026-11-01
"""


def section(version):
    """Call the function of the script that a release runs."""
    path = ROOT / ".ci" / "release_notes.py"
    spec = importlib.util.spec_from_file_location("release_notes", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script.section(RELEASED, version)


def test_what_is_not_released_is_on_top():
    heads = re.findall(r"^## (.*)$", TEXT, re.MULTILINE)
    assert heads[0] == "[Unreleased]"
    release = r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d"
    assert [head for head in heads[1:] if not re.fullmatch(release, head)] == []


def test_a_release_has_each_kind_of_change_once():
    for part in TEXT.split("\n## ")[1:]:
        kinds = re.findall(r"^### (.*)$", part, re.MULTILINE)
        assert {*kinds} <= {*KINDS}
        assert len({*kinds}) == len(kinds)


def test_the_notes_of_a_release_are_its_section():
    assert section("1.10.0") == "### Added\n\n- This.\n"


@pytest.mark.parametrize("version", ["1.1.0", "1x10.0", "Unreleased"])
def test_a_release_without_a_section_fails(version):
    with pytest.raises(LookupError, match=r"CHANGELOG\.md has no section"):
        section(version)
