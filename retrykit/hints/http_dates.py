"""The dates of HTTP, read as leniently as its recipients are asked to.

It knows nothing of where a date stands and what it is for.

Source:
    RFC 9110, "HTTP Semantics", section 5.6.7, 2022.
"""

import re

__all__ = ["parse_http_date"]


def parse_http_date(text: str, now: float) -> float | None:
    """Return the time that a date means, in seconds since 1970.

    All three forms of HTTP are read, and what mail allows beside them. A date
    without a zone is in UTC.

    >>> parse_http_date("Thu, 01 Jan 1970 00:02:00 GMT", now=0)
    120.0
    >>> parse_http_date("Thursday, 01-Jan-70 00:02:00 GMT", now=0)
    120.0
    >>> parse_http_date("Thu Jan  1 00:02:00 1970", now=0)
    120.0

    Args:
        text: What may be a date.
        now: What time it is, in seconds since 1970: a year of two digits is
            at most 50 years ahead of it.

    Returns:
        The time; None if the text is no date, is impossible, or has a zone
        that is not known.
    """
    # What Python takes for a digit goes beyond ASCII.
    if not text.isascii():
        return None
    # Imported here: only who is sent a date needs it.
    from email.utils import parsedate_to_datetime  # noqa: PLC0415

    text = _TWO_DIGITS.sub(lambda found: str(_year(int(found[0]), now)), text)
    text = _NO_ZONE.sub(r"\1 GMT", text)
    leap = text.count(_LEAP)
    try:
        date = parsedate_to_datetime(text.replace(_LEAP, ":59:59"))
    except Exception:  # noqa: BLE001  it has raised several kinds of error
        return None
    return date.timestamp() + leap if date.tzinfo else None


def _year(two_digits: int, now: float) -> int:
    latest = int(1970 + now / _YEAR) + 50
    return latest - (latest - two_digits) % 100


_YEAR = 365.2425 * 86_400

_TWO_DIGITS = re.compile(r"(?<=-[A-Za-z]{3}-)[0-9]{2}(?= )")

# A minute that ends a day may have 61 seconds, which no date of Python's has.
_LEAP = ":59:60"

# As asctime writes it, or a mail whose zone is kept secret.
_NO_ZONE = re.compile(r"( [0-9]{4}|:[0-9]{2})(?: -0000)?$")
