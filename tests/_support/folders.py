"""Folders of code that is written for a test, and found there."""

import functools
import sys
from contextlib import contextmanager
from textwrap import dedent

import pytest

from retrykit.analysis.lint import discover

HEAD = "from retrykit import Policy, retry, aretry, with_policy\n"


@pytest.fixture
def write(tmp_path):
    """Write modules below a folder: ``deep__jobs="..."`` is deep/jobs.py."""
    return functools.partial(_written, tmp_path)


@pytest.fixture
def package(tmp_path):
    """Write a package `shop` of modules, and return its folder."""

    def shop(**files):
        folder = _written(tmp_path / "shop", **files)
        (folder / "__init__.py").touch()
        return folder

    return shop


def _written(folder, **files):
    for name, text in files.items():
        path = folder.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD + dedent(text), "utf-8")
    return folder


def names(target, **told):
    """Return what is found in a target, by name."""
    return [str(found) for found in discover(str(target), **told).found]


@contextmanager
def importable(folder):
    """Let everybody import what is in a folder, and forget it after that."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in {"jobs", "shop"}:
            del sys.modules[name]


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Hold that nothing is left of what a test imports."""
    path, before = list(sys.path), set(sys.modules)
    yield
    assert sys.path == path
    left = {name.partition(".")[0] for name in set(sys.modules) - before}
    assert left & {"jobs", "shop", "near", "a", "json"} == set()
