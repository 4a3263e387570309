"""Shares of a capacity."""

import pytest

from retrykit import ConfigError
from retrykit._internal.shares import parse_share


@pytest.mark.parametrize(
    ("written", "share"),
    [("70%", 0.7), (" 12.5 % ", 0.125), (0.3, 0.3)],
    ids=str,
)
def test_a_share_is_a_percentage_or_a_number(written, share):
    assert parse_share("load", written) == share


@pytest.mark.parametrize(
    "written", ["100%", "0%", "70", "x%", "7%x", 1, 0, True, None], ids=str
)
def test_what_is_no_share_is_named(written):
    with pytest.raises(ConfigError, match="load must be a share of the capacity"):
        parse_share("load", written)
