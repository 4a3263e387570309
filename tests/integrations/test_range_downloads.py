"""The rules of downloads that continue by ranges, of RFC 9110."""

import pytest

from retrykit.errors import DownloadError, GiveUp, RetryAfter
from retrykit.integrations._http.range_downloads import RangeDownload, Reply

IDENTITY = {"accept-encoding": "identity"}
OLD = "Mon, 01 Jan 2024 10:00:00 GMT"
LATER = "Mon, 01 Jan 2024 10:01:00 GMT"


def fail():
    raise OSError("the status is an error")


def reply(status=200, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, named, (), fail if status >= 400 else lambda: None)


def begun(received=b"abc", restarts=0, **headers):
    """Return a download that was cut off."""
    download = RangeDownload(restarts)
    assert download.request_headers() == IDENTITY
    headers = {"etag": '"1"', "content_length": "10"} | headers
    assert download.begin(reply(**{k: v for k, v in headers.items() if v is not None}))
    assert download.take(received) == received
    return download


def partial(text="bytes 3-9/10", **headers):
    return reply(206, content_range=text, **headers)


def refused(download, answer):
    with pytest.raises(GiveUp) as caught:
        download.begin(answer)
    assert isinstance(caught.value.cause, DownloadError)
    return caught.value.cause


def test_it_continues_behind_a_strong_tag():
    download = begun()
    assert download.request_headers() == {
        **IDENTITY,
        "range": "bytes=3-",
        "if-range": '"1"',
    }
    assert download.begin(partial(etag='"1"'))
    assert download.take(b"defghij") == b"defghij"
    assert (download.missing(), download.is_complete) == (None, True)
    assert download.position() == {"offset": 10, "begun": 1}


def test_a_date_that_is_strong_takes_the_place_of_a_tag():
    download = begun(etag=None, last_modified=OLD, date=LATER)
    assert download.request_headers()["if-range"] == OLD
    assert download.begin(partial(last_modified=OLD))
    assert str(refused(download, partial(last_modified=LATER))).endswith(
        "ignored If-Range"
    )


WEAK = {
    "a weak tag": {"etag": 'W/"1"'},
    "a weak tag beside a date": {"etag": 'W/"1"', "last_modified": OLD, "date": LATER},
    "a tag without quotes": {"etag": "1"},
    "nothing": {"etag": None},
    "a date of this minute": {
        "etag": None,
        "last_modified": OLD,
        "date": "Mon, 01 Jan 2024 10:00:59 GMT",
    },
    "a date without that of the response": {"etag": None, "last_modified": OLD},
    "no date": {"etag": None, "last_modified": "yesterday", "date": LATER},
}


@pytest.mark.parametrize("name", WEAK)
def test_it_does_not_continue_behind(name):
    download = begun(**WEAK[name])
    with pytest.raises(GiveUp) as caught:
        download.request_headers()
    assert str(caught.value.cause) == (
        "the download cannot continue after 3 bytes: the server has sent no strong "
        "ETag or Last-Modified"
    )
    anew = begun(restarts=1, **WEAK[name])
    assert anew.request_headers() == IDENTITY
    assert anew.position() == {"offset": 0, "begun": 2}


def test_it_begins_anew_while_nothing_was_handed_out():
    download = begun(b"", etag=None)
    assert download.request_headers() == IDENTITY
    assert download.begin(reply(etag='"2"'))


def test_a_whole_file_with_another_tag_has_changed():
    assert "changed" in refused(begun(), reply(etag='"2"')).reason
    assert "changed" in refused(begun(), reply()).reason


def test_a_whole_file_with_the_same_tag_is_skipped_up_to_the_offset():
    download = begun(b"abcd")
    assert download.begin(reply(etag='"1"', content_length="10"))
    assert download.take(b"abc") == b""
    assert download.missing() == "the body ended after 3 of 10 bytes"
    assert download.take(b"defgh") == b"efgh"
    assert download.take(b"ij") == b"ij"
    assert download.missing() is None


def test_a_repeated_body_of_unknown_size_that_ends_early_is_told():
    download = begun(b"abcd", content_length=None)
    assert download.begin(reply(etag='"1"'))
    assert download.take(b"ab") == b""
    missing = "the body ended after 2 bytes; 4 had been received before"
    assert download.missing() == missing


CHANGED = {
    "another tag": partial(etag='"2"'),
    "a weak tag": partial(etag='W/"1"'),
    "another size": partial("bytes 3-10/11"),
    "another offset": partial("bytes 2-9/10"),
    "another unit": partial("lines 3-9/10"),
    "no range": reply(206),
    "an end before the offset": reply(416, content_range="bytes */2"),
    "no bytes from there on": reply(416),
}


@pytest.mark.parametrize("name", CHANGED)
def test_bytes_of_another_file_are_not_taken(name):
    assert refused(begun(), CHANGED[name]).offset == 3
    download = begun(restarts=1)
    with pytest.raises(RetryAfter) as caught:
        download.begin(CHANGED[name])
    assert (caught.value.delay, caught.value.cause.offset) == (0, 3)
    assert download.request_headers() == IDENTITY
    assert download.position() == {"offset": 0, "begun": 2}


def test_a_range_may_have_an_unknown_size_and_no_tag():
    download = begun(content_length=None)
    assert download.missing() is None
    assert download.begin(partial("bytes 3-9/*"))
    assert download.total is None
    assert download.begin(partial("bytes 3-9/10"))
    assert download.total == 10


def test_a_server_that_has_no_more_bytes_had_sent_them_all():
    download = begun(content_length=None)
    assert not download.is_complete
    assert download.begin(reply(416, content_range="bytes */3")) is False
    assert download.is_complete
    # Without a size in this answer: that of the first one.
    assert begun(content_length="3").begin(reply(416)) is False


def test_a_short_body_is_told():
    assert begun().missing() == "the body ended after 3 of 10 bytes"
    assert begun(content_length="x").missing() is None


def test_more_bytes_than_were_announced_are_left_out():
    download = RangeDownload()
    download.begin(reply(etag='"1"', content_length="2"))
    assert download.take(b"abc") == b"ab"
    assert download.is_complete
    download = begun()
    download.begin(partial("bytes 3-5/10", etag='"1"'))
    assert download.take(b"defgh") == b"def"
    assert download.missing() == "the body ended after 6 of 10 bytes"


@pytest.mark.parametrize(
    "answer",
    [
        reply(etag='"1"', content_length="12"),
        partial("bytes 3-12/10", etag='"1"'),
        partial("bytes 3-12/*", etag='"1"'),
        partial("bytes 3-2/10", etag='"1"'),
        reply(416, content_range="bytes */3", etag='"1"'),
        reply(416, content_range="bytes */3", etag='"2"'),
    ],
    ids=["whole", "beyond", "beyond *", "backwards", "shorter", "shorter, other tag"],
)
def test_a_file_of_another_size_has_changed(answer):
    refused(begun(), answer)


def test_a_whole_file_of_the_same_date_may_have_changed():
    download = begun(etag=None, last_modified=OLD, date=LATER)
    answer = reply(last_modified=OLD, date=LATER, content_length="10")
    assert "changed" in refused(download, answer).reason


def test_a_range_that_nobody_asked_for():
    download = RangeDownload()
    assert download.begin(partial("bytes 0-9/10", etag='"1"'))
    assert download.total == 10
    assert "other bytes" in refused(RangeDownload(), partial()).reason


@pytest.mark.parametrize("status", [204, 304])
def test_another_status_is_refused(status):
    assert f"status {status}" in refused(RangeDownload(), reply(status)).reason


@pytest.mark.parametrize("status", [404, 416, 503])
def test_the_status_of_an_error_is_that_of_the_client(status):
    with pytest.raises(OSError, match="the status is an error"):
        RangeDownload().begin(reply(status))


def test_a_file_that_changes_for_ever_is_given_up():
    download = begun(restarts=2)
    for tag in ('"2"', '"3"'):
        assert download.begin(reply(etag=tag))
        download.take(b"ab")
    assert "changed" in refused(download, reply(etag='"4"')).reason
