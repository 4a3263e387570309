"""Targets: delays that servers request, in HTTP headers and gRPC metadata."""

from email.utils import formatdate

from retrykit.errors import GiveUp, RetryAfter
from retrykit.hints import (
    attribute,
    first_of,
    grpc_pushback,
    milliseconds,
    rate_limit,
    reset_at,
    retry_after,
)
from retrykit.hints._base import read_hint
from retrykit.schedules._randomness import MAX_DELAY
from tests.fuzz.target import Target
from tests.fuzz.values import anything, maybe, mutated, number, scalar, text

__all__ = ["TARGETS"]

_HINTS = (
    retry_after(),
    milliseconds("retry-after-ms"),
    reset_at(),
    rate_limit(),
    first_of(milliseconds("retry-after-ms"), retry_after(), reset_at()),
    grpc_pushback(),
    attribute("retry_after"),
    attribute("response.retry_after", "ms"),
)
_NAMES = ("Retry-After", "retry-after-ms", "X-RateLimit-Reset", "Date")
_NAMES += ("x-ratelimit-remaining", "RateLimit", "RateLimit-Policy")
_NUMBERS = (
    "0",
    "5",
    "120",
    "1.5",
    "-1",
    "007",
    "1e9",
    "1790000000",
    "9" * 400,
    "1e309",
    "6m0s",
    "120ms",
    "2026-09-30T12:34:56Z",
    "1790000000000",
    "5e-05",
    '"a";r=0;t=5, "b";r=0;w=9',
    "limit=9, remaining=0, reset=5",
)


class BusyError(Exception):
    """An error with a response, like those of clients."""

    def __init__(self, headers, waits):
        super().__init__("503")
        self.headers, self.retry_after, self.response = headers, waits, self

    def trailing_metadata(self):
        """Return the metadata of a failed gRPC call."""
        return self.headers


def _date(random):
    string = formatdate(random.uniform(-1e9, 5e9), usegmt=maybe(random, 0.5))
    if maybe(random, 0.3):
        string = random.choice(
            [
                "Thursday, 01-Jan-70 00:02:00 GMT",
                "Thu Jan  1 00:02:00 1970",
                "Thu, 31 Dec 2026 23:59:60 GMT",
                "Thu, 01 Jan 99999 00:00:00 GMT",
                "Thu, 01 Jan 0000 00:00:00 +9999",
            ]
        )
    return string


def _field(random):
    kind = random.random()
    if kind < 0.45:
        string = random.choice(_NUMBERS)
    elif kind < 0.85:
        string = _date(random)
    else:
        return scalar(random)
    string = mutated(random, string) if maybe(random, 0.4) else string
    if maybe(random, 0.05):
        string = ", ".join([string] * random.choice([2, 3, 200]))
    return string.encode("utf-8", "surrogatepass") if maybe(random, 0.1) else string


def _headers(random):
    sent = [
        (random.choice(_NAMES), _field(random)) for _ in range(random.randint(1, 4))
    ]
    headers = random.choice([dict, list, tuple])(sent)
    return anything(random) if maybe(random, 0.02) else headers


def _metadata(random):
    key = "grpc-retry-pushback-ms"
    numbers = ["0", "5000", "-1", "2147483647", "2147483648", "01", "1.5", text(random)]
    sent = [(key, random.choice(numbers)) for _ in range(random.randint(1, 3))]
    if maybe(random, 0.2):
        sent.append(random.choice([(), ("a",), None, (key, scalar(random))]))
    return sent


def _error(random):
    return (_headers if maybe(random, 0.9) else _metadata)(random), _waits(random)


def _waits(random):
    return random.choice([number, text, anything])(random)


def _read_hints(given):
    """Return the answers of all hints; none of them may fail."""
    headers, waits = given
    error = BusyError(headers, waits)
    return [read_hint(hint, error, error) for hint in _HINTS]


def _check_answers(answers, _random):
    for answer in answers:
        delay = answer.delay if isinstance(answer, RetryAfter) else answer
        if delay is not None and not isinstance(delay, GiveUp):
            assert isinstance(delay, float), delay
            assert 0 <= delay <= MAX_DELAY, delay


TARGETS = (Target("headers", 120, _error, _read_hints, _check_answers),)
