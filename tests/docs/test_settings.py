"""The page of every setting has what docstrings say and examples contradict."""

import pytest

from docs._site.settings import (
    CONTRADICTIONS,
    PAGE,
    contradiction,
    outdated_rows,
    parameters,
)
from retrykit._core.settings import SETTINGS

pytestmark = pytest.mark.thorough

TEXT = PAGE.read_text("utf-8")


def test_the_page_is_as_docstrings_say():
    assert outdated_rows(TEXT) == []


def test_every_setting_of_a_policy_has_a_row():
    rows = TEXT.partition("<!-- end -->")[0]
    for name in SETTINGS:
        assert f"`{name}`](" in rows or f"| `{name}` |" in rows


def test_a_setting_without_an_entry_is_named():
    def function(known, unknown):
        """Do something.

        Args:
            known: It has an entry.
        """

    with pytest.raises(LookupError, match=r"unknown of .*function has no entry"):
        list(parameters(function))


def test_a_row_that_is_missing_is_found():
    row = next(line for line in TEXT.splitlines() if "`max_failures`](" in line)
    assert outdated_rows(TEXT.replace(f"{row}\n", "")) == [row]


def test_settings_that_contradict_nothing_are_not_listed():
    with pytest.raises(LookupError, match="contradicts nothing"):
        contradiction("Policy()")


@pytest.mark.parametrize(
    "example", [each for examples in CONTRADICTIONS.values() for each in examples]
)
def test_settings_contradict_each_other(example):
    name, rule = contradiction(example)
    assert name
    assert rule
