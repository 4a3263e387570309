"""Lenient parser of HTTP dates.

Source:
    RFC 9110, "HTTP Semantics", section 5.6.7, 2022.
"""

import re

__all__ = ["parse_http_date"]


def parse_http_date(text: str, now: float) -> float | None:
    """Return the time of an HTTP date, in seconds since 1970.

    All three forms of HTTP are read, and those of email. A date without a zone
    is in UTC.

    >>> parse_http_date("Thu, 01 Jan 1970 00:02:00 GMT", now=0)
    120.0
    >>> parse_http_date("Thursday, 01-Jan-70 00:02:00 GMT", now=0)
    120.0
    >>> parse_http_date("Thu Jan  1 00:02:00 1970", now=0)
    120.0

    Args:
        text: The text to parse.
        now: The current time in seconds since 1970: a two-digit year is at most
            50 years ahead of it.

    Returns:
        The time; None if the text is not a valid date or its zone is unknown.
    """
    # Python accepts digits beyond ASCII.
    if not text.isascii():
        return None
    # Imported late, since few responses contain a date.
    from email.utils import parsedate_to_datetime  # noqa: PLC0415

    text = _TWO_DIGITS.sub(lambda found: str(_year(int(found[0]), now)), text)
    text = _NO_ZONE.sub(r"\1 GMT", text)
    leap = text.count(_LEAP)
    try:
        date = parsedate_to_datetime(text.replace(_LEAP, ":59:59"))
    except Exception:  # noqa: BLE001  it raises several types of error
        return None
    return date.timestamp() + leap if date.tzinfo else None


def _year(two_digits: int, now: float) -> int:
    latest = int(1970 + now / _YEAR) + 50
    return latest - (latest - two_digits) % 100


_YEAR = 365.2425 * 86_400

_TWO_DIGITS = re.compile(r"(?<=-[A-Za-z]{3}-)[0-9]{2}(?= )")

# A leap second, which datetime does not have.
_LEAP = ":59:60"

# The asctime form, or an RFC 5322 date with zone -0000 (unknown).
_NO_ZONE = re.compile(r"( [0-9]{4}|:[0-9]{2})(?: -0000)?$")
