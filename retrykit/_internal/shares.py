"""Shares of a capacity, such as ``"70%"``."""

from typing import cast

from retrykit._internal.validation import invalid_setting

__all__ = ["parse_share"]


def parse_share(name: str, load: object) -> float:
    """Parse a share of a server's capacity, given as a number or in percent.

    >>> parse_share("load", "70%")
    0.7

    Returns:
        A number above 0 and below 1.

    Raises:
        ConfigError: *load* is not such a share.
    """
    share: object = load
    if isinstance(load, str):
        number, sign, rest = load.partition("%")
        try:
            share = float(number) / 100 if sign and not rest.strip() else None
        except ValueError:
            share = None
    known = isinstance(share, int | float) and not isinstance(share, bool)
    if known and 0 < cast("float", share) < 1:
        return float(cast("float", share))
    rule = 'a share of the capacity above 0 and below 1, such as "70%"'
    suggestion = "from 100 % on, the queue grows without an outage"
    raise invalid_setting(name, rule, load, suggestion, code="out-of-range")
