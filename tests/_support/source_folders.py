"""Writes modules for tests of discovery, and imports them."""

import functools
import sys
from contextlib import contextmanager
from textwrap import dedent

import pytest

from retrykit.analysis.lint import discover

HEAD = "from retrykit import Policy, retry, aretry, with_policy\n"


@pytest.fixture
def write(tmp_path):
    """Return a function that writes modules: ``deep__jobs="..."`` is deep/jobs.py."""
    return functools.partial(_write, tmp_path)


@pytest.fixture
def package(tmp_path):
    """Return a function that writes a package `shop`, and returns its folder."""

    def shop(**files):
        folder = _write(tmp_path / "shop", **files)
        (folder / "__init__.py").touch()
        return folder

    return shop


def _write(folder, **files):
    for name, text in files.items():
        path = folder.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD + dedent(text), "utf-8")
    return folder


def found_names(target, **options):
    """Return the names of the policies found in a target."""
    return [str(found) for found in discover(str(target), **options).found]


@contextmanager
def on_import_path(folder):
    """Make the modules of a folder importable, and forget them afterwards."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in {"jobs", "shop"}:
            del sys.modules[name]


@pytest.fixture(autouse=True)
def no_imports_left():
    """Fail if a test leaves changes of the path or imported modules behind."""
    path, before = list(sys.path), set(sys.modules)
    yield
    assert sys.path == path
    left = {name.partition(".")[0] for name in set(sys.modules) - before}
    assert left & {"jobs", "shop", "near", "a", "json"} == set()
