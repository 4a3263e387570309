"""Hints from HTTP headers on errors and responses of all clients."""

import email.message
import http.client
import io
import logging
import time
from email.utils import formatdate
from types import SimpleNamespace
from urllib.error import HTTPError

import pytest
from hypothesis import example, given, strategies as st

from retrykit import Policy
from retrykit.hints import milliseconds, retry_after
from retrykit.hints._retry_after_header import (
    header_values,
    parse_http_date,
    parse_retry_after,
    unread_headers,
)
from retrykit.schedules._randomness import MAX_DELAY
from retrykit.testing import virtual_time

# The three forms of one date in RFC 9110, 5.6.7.
FIXED = "Sun, 06 Nov 1994 08:49:37 GMT"
RFC_850 = "Sunday, 06-Nov-94 08:49:37 GMT"
ASCTIME = "Sun Nov  6 08:49:37 1994"
THEN = 784_111_777.0


def response_with(*lines, **headers):
    """A response with Retry-After, once for each line."""
    pairs = [("Retry-After", line) for line in lines]
    return SimpleNamespace(headers=[*pairs, *headers.items()])


def clock_at(time):
    return lambda: time


def no_clock():
    raise AssertionError("nobody needs to know what time it is")


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        ("120", 120.0),
        ("0", 0.0),
        ("007", 7.0),
        (" \t120\r\n", 120.0),
        ("9999999", 9_999_999.0),
        ("9" * 309, MAX_DELAY),
        ("9" * 100_000, MAX_DELAY),
        (b"120", 120.0),
        ("2.5", 2.5),
        ("2.0", 2.0),
        ("0.129", 0.129),
        ("292.052427053", 292.052427053),
        (".5", 0.5),
        ("2.", 2.0),
        ("5e-05", 0.00005),
        ("1E9", 1e9),
        ("1e999", MAX_DELAY),
        ("30s", 30.0),
        ("1m0s", 60.0),
        ("250ms", 0.25),
    ],
    ids=lambda value: str(value)[:12],
)
def test_seconds_are_read_as_services_write_them(text, delay, caplog):
    """delay-seconds = 1*DIGIT; some services send fractions or units."""
    caplog.set_level(logging.DEBUG)
    assert retry_after()(response_with(text)) == delay
    assert caplog.records == []


@pytest.mark.parametrize("text", [FIXED, RFC_850, ASCTIME])
def test_a_date_has_three_forms(text):
    """A recipient that parses a timestamp value MUST accept all three."""
    assert parse_http_date(text, THEN) == THEN
    assert parse_retry_after(response_with(text), clock_at(THEN - 100)) == 100.0


@pytest.mark.parametrize(
    ("text", "ahead"),
    [
        ("Sun, 06 Nov 1994 08:49:37", 0),
        ("Sun, 06 Nov 1994 08:49:37 -0000", 0),
        ("Sun, 06 Nov 1994 08:49:37 UTC", 0),
        ("Sun, 06 Nov 1994 08:49:37 +0100", -3_600),
        ("Sun, 06 Nov 1994 08:49:37 EST", 5 * 3_600),
        ("6 Nov 1994 08:49 GMT", -37),
        ("Sun, 06 Nov 1994 08:59:60 GMT", 623),
    ],
    ids=lambda value: str(value)[5:],
)
def test_dates_are_read_leniently(text, ahead):
    """Recipients of timestamp values are encouraged to be robust."""
    assert parse_http_date(text, THEN) == THEN + ahead


@pytest.mark.parametrize(
    ("year", "digits", "read"),
    [
        (1994, "94", 1994),
        (2026, "94", 1994),
        (2026, "70", 2070),
        (2026, "76", 2076),
        (2026, "77", 1977),
        (2060, "68", 2068),
        (1994, "10", 2010),
        (1994, "50", 1950),
    ],
    ids=str,
)
def test_a_year_of_two_digits_is_at_most_fifty_years_ahead(year, digits, read):
    """More than 50 years in the future: the most recent year in the past."""
    now = parse_http_date(f"01 Jul {year} 00:00:00 GMT", 0)
    date = parse_http_date(f"Sunday, 06-Nov-{digits} 08:49:37 GMT", now)
    assert date == parse_http_date(f"06 Nov {read} 08:49:37 GMT", now)


NO_DELAYS = [
    *[
        "",
        "soon",
        "-5",
        "+5",
        "1.5.2",
        "1e",
        "0x10",
        "5 parsecs",
        "1_000",
        "5 5",
        "inf",
        "nan",
    ],
    *["٣", "五", "²", "12:30", "2026-11-21T00:00:00", "-", "GMT", "1.5e-9999", "."],
    *["Sun, 06 Nov 1994", "Sun, 06 Now 1994 08:49:37 GMT"],
    *["Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT"],
    *["Sun, 06 Nov 1994 08:49:37 XYZ", "Sun, 06 Nov 1994 08:49:37 +9999"],
    *["Sun, 06 Nov 1994 08:49:37 +01:00", "Sun, 06 Nov 1994 08:60:00 GMT"],
    *["Sun 06 Nov 1994 ٠٨:49:37 GMT", "Sun, 06 Nov 99999999999999999999 00:00:00 GMT"],
]


@pytest.mark.parametrize("text", NO_DELAYS, ids=ascii)
def test_an_invalid_header_is_ignored_and_logged_once_as_a_warning(text, caplog):
    unread_headers.clear()
    caplog.set_level(logging.DEBUG)
    assert retry_after()(response_with(text)) is None
    assert retry_after()(response_with(text)) is None
    logged = "ignored Retry-After, which is neither a delay nor a time: "
    logged += f"{text!r}"
    more = "; further ones are logged at level DEBUG"
    assert caplog.record_tuples == [
        ("retrykit", logging.WARNING, f"{logged}{more}"),
        ("retrykit", logging.DEBUG, logged),
    ]


def test_one_unread_value_of_each_header_is_a_warning(caplog):
    """Not one for each of many calls, whose server sends it every time."""
    unread_headers.clear()
    busy = SimpleNamespace(headers={"Retry-After": "soon", "Retry-After-Ms": "soon"})
    with virtual_time():
        for hint in (retry_after(), milliseconds("retry-after-ms")) * 50:
            Policy(schedule=[1, 1], hint=hint).run(raise_in_turn(busy))
    warnings = [x.args[0] for x in caplog.records if x.name == "retrykit"]
    assert warnings == ["Retry-After", "retry-after-ms"]


def raise_in_turn(response):
    def fail():
        raise failed_response(response)

    return fail


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        ("1994-11-06T08:49:37Z", 100.0),
        ("1994-11-06 08:49:37.5Z", 100.5),
        ("1994-11-06T09:49:37+01:00", 100.0),
        ("1994-11-06T08:00:00Z", 0.0),
    ],
)
def test_a_date_may_have_the_form_of_rfc_3339(text, delay):
    assert parse_retry_after(response_with(text), clock_at(THEN - 100)) == delay


def test_the_log_has_only_the_start_of_a_long_header(caplog):
    caplog.set_level(logging.DEBUG)
    assert retry_after()(response_with("x" * 100_000)) is None
    assert len(caplog.text) < 200


def test_a_date_is_relative_to_the_date_of_its_response():
    response = response_with(FIXED, Date="Sun, 06 Nov 1994 08:49:07 GMT")
    assert parse_retry_after(response, clock_at(0)) == 30.0
    assert parse_retry_after(response, clock_at(THEN + 1e9)) == 30.0
    assert retry_after()(response) == 30.0


@pytest.mark.parametrize("date", ["", "soon", "Sun, 31 Feb 1994 08:49:37 GMT"])
def test_a_date_is_relative_to_the_wall_clock_without_a_date_header(date):
    assert parse_retry_after(response_with(FIXED, Date=date), clock_at(THEN - 5)) == 5.0


def test_retry_after_uses_the_wall_clock():
    delay = retry_after()(response_with(formatdate(time.time() + 1e6, usegmt=True)))
    assert 1e6 - 60 < delay < 1e6 + 60


def test_a_clock_that_jumps_affects_only_dates_without_a_date_header():
    readings = [THEN - 60, THEN - 3_600, THEN + 3_600]
    delays = [
        parse_retry_after(response_with(FIXED), clock_at(reading))
        for reading in readings
    ]
    assert delays == [60.0, 3_600.0, 0.0]
    assert {
        parse_retry_after(response_with("60"), clock_at(reading))
        for reading in readings
    } == {60.0}


def test_a_date_in_the_past_means_now():
    assert parse_retry_after(response_with(FIXED), clock_at(THEN + 1)) == 0.0
    assert parse_retry_after(response_with(FIXED, Date=FIXED), clock_at(0)) == 0.0


def test_no_clock_is_read_for_a_response_without_the_header():
    assert parse_retry_after(response_with(Date=FIXED), no_clock) is None


@pytest.mark.parametrize(
    ("lines", "delay"),
    [
        (["5", "120", "60"], 120.0),
        (["5, 120,60"], 120.0),
        (["soon", "5"], 5.0),
        (["-5, 5"], 5.0),
        ([f"5, {FIXED}"], 100.0),
        ([f"{RFC_850}, 5"], 100.0),
        ([ASCTIME, "500"], 500.0),
        ([f"{ASCTIME}, {FIXED}"], 100.0),
    ],
    ids=str,
)
def test_the_longest_delay_of_repeated_headers_wins(lines, delay):
    assert parse_retry_after(response_with(*lines), clock_at(THEN - 100)) == delay


def test_several_invalid_headers_are_logged_in_one_line(caplog):
    caplog.set_level(logging.DEBUG)
    assert retry_after()(response_with("soon", "5", "later")) == 5.0
    (record,) = caplog.records
    assert ": 'soon', 'later'" in record.getMessage()


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        ("1500", 1.5),
        ("0", 0.0),
        ("12.5", 0.0125),
        ("1, 20", 0.02),
        ("9" * 400, MAX_DELAY),
        ("9" * 310, MAX_DELAY),
    ],
    ids=lambda value: str(value)[:12],
)
def test_milliseconds_reads_a_header_in_milliseconds(text, delay):
    """x-amz-retry-after, as AWS sends it, and retry-after-ms."""
    response = SimpleNamespace(headers={"X-Amz-Retry-After": text})
    assert milliseconds("x-amz-retry-after")(response) == delay
    assert milliseconds("retry-after-ms")(response) is None


@pytest.mark.parametrize("text", ["", "-1", "soon", "٣", ".", "1s", "1e", "nan", FIXED])
def test_milliseconds_ignores_an_invalid_header(text, caplog):
    caplog.set_level(logging.DEBUG)
    response = SimpleNamespace(headers={"retry-after-ms": text})
    assert milliseconds("retry-after-ms")(response) is None
    assert len(caplog.records) == 1


def message(*lines):
    headers = email.message.Message()
    for line in lines:
        headers["retry-after"] = line
    return headers


def test_the_headers_of_urllib_are_found():
    body = io.BytesIO()
    error = HTTPError("http://[::1]/", 503, "busy", message("5", "7"), body)
    with error:
        assert retry_after()(error) == 7.0
        assert milliseconds("retry-after-ms")(error) is None
    with HTTPError("http://[::1]/", 503, "busy", {}, None) as error:
        assert retry_after()(error) is None


class FakeSocket(io.BytesIO):
    """A response with the headers of a server."""

    def makefile(self, *_args):
        return self


def test_the_headers_of_http_client_are_found():
    wire = FakeSocket(b"HTTP/1.1 503 busy\r\nRetry-After: 5\r\nRETRY-AFTER: 7\r\n\r\n")
    response = http.client.HTTPResponse(wire)
    response.begin()
    assert header_values(response, "retry-after") == ["5", "7"]
    response.close()


class JoinedHeaders:
    """Headers of requests, httpx or tornado: repeated headers are joined."""

    def __init__(self, comma):
        self.comma = comma

    def items(self):
        return {"retry-after": f"5{self.comma}7"}.items()


class RepeatedHeaders:
    """Headers of urllib3 or aiohttp: a mapping whose items are repeated."""

    def items(self):
        yield "Retry-After", "5"
        yield "Server", None
        yield "RETRY-AFTER", "7"


class Response:
    """A failed response of requests is falsy."""

    def __init__(self, headers):
        self.headers = headers

    def __bool__(self):
        return False


def failed_response(response):
    error = OSError("503")
    error.response = response
    return error


class RequestError(Exception):
    """An error of httpx, of a request that was never sent."""

    @property
    def response(self):
        raise RuntimeError


@pytest.mark.parametrize(
    "outcome",
    [
        Response(JoinedHeaders(", ")),
        Response(JoinedHeaders(",")),
        Response(RepeatedHeaders()),
        Response({b"Retry-After": b"7"}),
        Response([(b"retry-after", b"5"), (b"retry-after", b"7")]),
        Response((("retry-after", "7"),)),
        failed_response(Response(JoinedHeaders(", "))),
        failed_response({"ResponseMetadata": {"HTTPHeaders": {"retry-after": "7"}}}),
        {"ResponseMetadata": {"HTTPHeaders": {"retry-after": "7"}}},
        SimpleNamespace(headers=None, response=Response(message("7"))),
    ],
    ids=[
        "httpx",
        "tornado",
        "urllib3",
        "bytes",
        "raw",
        "tuple",
        "requests",
        "botocore",
        "botocore's result",
        "aiohttp",
    ],
)
def test_headers_are_found_on_errors_and_responses(outcome):
    assert retry_after()(outcome) == 7.0


@pytest.mark.parametrize(
    "outcome",
    [
        RequestError(),
        failed_response(None),
        Response(None),
        Response("retry-after: 7"),
        Response([("retry-after", "7", "more")]),
        Response({"retry-after": 7, 7: "retry-after"}),
        {"ResponseMetadata": None},
        {"retry-after": "7"},
    ],
    ids=[
        "never sent",
        "no response",
        "no headers",
        "text",
        "triple",
        "no texts",
        "no metadata",
        "no response at all",
    ],
)
def test_an_outcome_without_the_headers_is_ignored(outcome):
    assert retry_after()(outcome) is None


def test_only_the_first_headers_of_very_many_are_read():
    assert len(header_values(response_with(*["1, 2"] * 1_000), "retry-after")) == 100


def test_one_shot_headers_are_not_consumed():
    headers = iter([("retry-after", "7")])
    assert retry_after()(Response(headers)) is None
    assert list(headers) == [("retry-after", "7")]


def headers_of_any_kind():
    text = st.text() | st.sampled_from(NO_DELAYS) | st.from_regex(r"[0-9GMT:, ]{1,40}")
    return st.lists(text | st.binary(), max_size=3)


@given(lines=headers_of_any_kind(), date=st.text(), now=st.floats(0, 4e9))
@example(lines=[FIXED], date="", now=0.0)
def test_any_header_is_a_delay_or_nothing(lines, date, now):
    delay = parse_retry_after(response_with(*lines, Date=date), clock_at(now))
    assert delay is None or 0.0 <= delay <= MAX_DELAY
    delay = milliseconds("retry-after")(response_with(*lines))
    assert delay is None or 0.0 <= delay <= MAX_DELAY


# Years have at most four digits.
TIMES = st.integers(0, 253_402_300_799)


@given(then=TIMES, ahead=st.integers(0, 10**9), now=st.floats(0, 4e9))
@example(then=0, ahead=0, now=0.0)
def test_a_date_some_seconds_after_its_response_is_that_delay(then, ahead, now):
    then = min(then, 253_402_300_799 - ahead)
    until = formatdate(then + ahead, usegmt=True)
    response = response_with(until, Date=formatdate(then, usegmt=True))
    assert parse_retry_after(response, clock_at(now)) == ahead


@given(time=TIMES)
def test_a_formatted_date_is_read_as_the_same_time(time):
    assert parse_http_date(formatdate(time, usegmt=True), 0.0) == time
    assert parse_http_date(formatdate(time), 0.0) == time
