"""When releases were published, as ``uv lock`` writes it down."""

import os
import subprocess
import tempfile
import tomllib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

__all__ = ["find_dates"]

_PROJECT = """
[project]
name = "comparison"
version = "0"
requires-python = ">=3.11"
dependencies = [{}]
"""


def find_dates(versions: Mapping[str, str]) -> dict[str, str]:
    """Return the month of each release, such as "October 2026".

    Args:
        versions: The versions by the names of the distributions.
    """
    wanted = [f'"{name}=={number}"' for name, number in versions.items()]
    # The pins of the gate do not limit what a lock may have.
    environ = {key: x for key, x in os.environ.items() if "CONSTRAINT" not in key}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "pyproject.toml").write_text(_PROJECT.format(", ".join(wanted)))
        subprocess.run(  # noqa: S603  names and versions from above
            ["uv", "lock", "--quiet", "--directory", folder],  # noqa: S607
            check=True,
            env=environ,
        )
        lock = tomllib.loads(Path(folder, "uv.lock").read_text("utf-8"))
    return {
        package["name"]: f"{_published(package):%B %Y}"
        for package in lock["package"]
        if package["name"] in versions
    }


def _published(package: Mapping[str, list[Mapping[str, str]]]) -> datetime:
    return datetime.fromisoformat(package["wheels"][0]["upload-time"])
