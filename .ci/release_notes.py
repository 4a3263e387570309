"""Prints the section of a release in CHANGELOG.md: ``release_notes.py v1.2.3``."""

import re
import sys
from pathlib import Path

__all__ = ["section"]


def section(changelog: str, version: str) -> str:
    """Return what the changelog says about a version, without its heading.

    Raises:
        LookupError: It has no section for the version, or an empty one.
    """
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$"
    found = re.search(rf"(?ms){heading}(.*?)(?=^## \[|\Z)", changelog)
    if found is None or not found[1].strip():
        message = f"CHANGELOG.md has no section ## [{version}] - YYYY-MM-DD"
        raise LookupError(message)
    return found[1].strip() + "\n"


if __name__ == "__main__":
    changelog = Path(__file__).parents[1] / "CHANGELOG.md"
    tag = sys.argv[1]
    sys.stdout.write(section(changelog.read_text("utf-8"), tag.removeprefix("v")))
