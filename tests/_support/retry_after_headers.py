"""Values of Retry-After headers, and the delays of a schedule of 1 s that follow."""

__all__ = ["DATE", "DELAYS"]

DELAYS = {
    "seconds": (["7"], 7.0),
    "a date": (["Sun, 06 Nov 1994 08:49:37 GMT"], 7.0),
    "malformed": (["soon"], 1.0),
    "negative": (["-5"], 1.0),
    "repeated": (["3", "9"], 9.0),
    "absurd": (["9" * 400], None),
    "beyond max_elapsed": (["31"], None),
}
DATE = ("Date", "Sun, 06 Nov 1994 08:49:30 GMT")
