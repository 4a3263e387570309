"""A test says what it needs: it is skipped without, or fails where all must be."""

import sys

import pytest

from tests import required

ALL = {"RETRYKIT_REQUIRE_ALL": "1"}


def test_what_is_there_is_given():
    assert required.command(sys.executable, "python3") == sys.executable
    assert required.library("sys") is sys


def test_without_a_command_a_test_is_skipped_that_names_its_package():
    with pytest.raises(pytest.skip.Exception, match="in Debian's package nothing-such"):
        required.command("nosuch", "nothing-such", {})
    with pytest.raises(pytest.skip.Exception, match="in npm's package nothing-such"):
        required.command("nosuch", "nothing-such", {}, source="npm")


def test_without_a_library_a_test_is_skipped_that_names_it():
    with pytest.raises(pytest.skip.Exception, match="nosuch is not installed"):
        required.library("nosuch", {})


def test_where_all_is_required_it_fails():
    with pytest.raises(pytest.fail.Exception, match="in Debian's package nothing-such"):
        required.command("nosuch", "nothing-such", ALL)
    with pytest.raises(pytest.fail.Exception, match="nosuch is not installed"):
        required.library("nosuch", ALL)
