"""What some tests need beside Python, and what follows if it is missing."""

import importlib
import os
import shutil

import pytest

__all__ = ["command", "library"]


def command(name, package, environ=os.environ, *, source="Debian"):
    """Return the path of a command, or skip the test that needs it.

    Where RETRYKIT_REQUIRE_ALL is set nothing may be missing: the test fails.
    """
    told = f"{name} is not installed; it is in {source}'s package {package}"
    return shutil.which(name) or _missing(told, environ)


def library(name, environ=os.environ):
    """Return a module, or skip the test that needs it, as for a command."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return _missing(f"{name} is not installed; pip installs it", environ)


def _missing(told, environ):
    if environ.get("RETRYKIT_REQUIRE_ALL"):
        pytest.fail(told)
    pytest.skip(told)
