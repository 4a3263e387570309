"""The rules of server-sent events, in the words of the HTML standard."""

import pytest
from hypothesis import given, strategies as st

from retrykit.errors import EventStreamError, GiveUp
from retrykit.integrations._http.event_streams import (
    EventParser,
    EventStream,
    ServerSentEvent,
)
from retrykit.integrations._http.range_downloads import Reply


def parse(*chunks, last_event_id=""):
    parser = EventParser(last_event_id)
    return [event for chunk in chunks for event in parser.feed(chunk)], parser


def message(data, last_id="", event="message", retry=None):
    return ServerSentEvent(event, data, last_id, retry)


# The examples of the standard, section 9.2.6, and the cases of its tests.
VECTORS = {
    "two lines of data": ("data: YHOO\ndata: +2\ndata: 10\n\n", ["YHOO\n+2\n10"]),
    "a comment and ids": (
        ": test\n\ndata: first\nid: 1\n\ndata:second event\nid\n\ndata:  third\n\n",
        ["first", "second event", " third"],
    ),
    "empty data": ("data\n\ndata\ndata\n\ndata:\n", ["", "\n"]),
    "a space is left out once": ("data:test\n\ndata: test\n\n", ["test", "test"]),
    "an event that has not ended": ("data: a\n\ndata: b\n", ["a"]),
    "no data": ("event: ping\nid: 3\n\n", []),
    "other fields": ("data:a\nother: b\nDATA: c\n data: d\ndata : e\n\n", ["a"]),
    "a colon in data": ("data: a:b\n\n", ["a:b"]),
    "a byte order mark": ("\ufeffdata: a\n\n", ["a"]),
    "a second byte order mark": ("\ufeff\ufeffdata: a\n\ndata: b\n\n", ["b"]),
    "other line ends": (
        "data: a\x0bb\x85c\u2028d\x1ce\n\n",
        ["a\x0bb\x85c\u2028d\x1ce"],
    ),
    "three kinds of line ends": ("data:a\rdata:b\r\ndata:c\n\r\n", ["a\nb\nc"]),
    "two carriage returns": ("data:a\r\rdata:b\r\r", ["a", "b"]),
    "NUL in data": ("data: a\0b\n\n", ["a\0b"]),
}


@pytest.mark.parametrize("name", VECTORS)
def test_a_stream_has_the_data_of_the_standard(name):
    text, data = VECTORS[name]
    events, _ = parse(text.encode())
    assert [each.data for each in events] == data


def test_the_type_of_an_event_is_for_one_event():
    events, _ = parse(
        b"event: add\ndata: 1\n\nevent\ndata: 2\n\nevent: x\n\ndata: 3\n\n"
    )
    assert [each.event for each in events] == ["add", "message", "message"]


IDS = {
    "kept by frames without one": ("id: 1\ndata: a\n\ndata: b\n\n", ["1", "1"]),
    "cleared by an empty one": ("id: 1\ndata: a\n\nid\ndata: b\n\n", ["1", ""]),
    "cleared by an empty value": ("id: 1\ndata: a\n\nid:\ndata: b\n\n", ["1", ""]),
    "with NUL ignored": ("id: 1\ndata: a\n\nid: 2\0\ndata: b\n\n", ["1", "1"]),
    "the last of a frame": ("id: 1\nid: 2\ndata: a\n\n", ["2"]),
    "of a frame without data": ("id: 5\n\ndata: a\n\n", ["5"]),
    "with spaces": ("id:  a b \ndata: a\n\n", [" a b "]),
    "of a connection before": ("data: a\n\n", ["9"]),
}


@pytest.mark.parametrize("name", IDS)
def test_the_last_id_is(name):
    text, ids = IDS[name]
    before = "9" if "before" in name else ""
    events, parser = parse(text.encode(), last_event_id=before)
    assert [each.id for each in events] == ids
    assert parser.last_event_id == ids[-1]


def test_the_id_of_a_frame_that_has_not_ended_does_not_move_the_cursor():
    _, parser = parse(b"id: 1\ndata: a\n\nid: 2\ndata: b\n")
    assert parser.last_event_id == "1"


def test_the_cursor_moves_with_each_event_and_not_with_the_chunk():
    parser = EventParser("")
    events = parser.feed(b"id: 1\ndata: a\n\nid: 2\ndata: b\n\n")
    assert (next(events).id, parser.last_event_id) == ("1", "1")
    assert (next(events).id, parser.last_event_id) == ("2", "2")


RETRIES = {
    "milliseconds": ("retry: 2500\n", 2500),
    "without an end of the frame": ("retry:7\n", 7),
    "a sign": ("retry: +1\n", None),
    "a fraction": ("retry: 1.5\n", None),
    "nothing": ("retry\n", None),
    "digits that are not ASCII": ("retry: \u0662\n", None),
    "a year at most": (f"retry: {'9' * 9999}\n", 366 * 86_400_000),
    "the last one": ("retry: 5\nretry: x\nretry: 6\n", 6),
}


@pytest.mark.parametrize("name", RETRIES)
def test_the_delay_of_reconnections_is(name):
    text, delay = RETRIES[name]
    [event], parser = parse(text.encode() + b"data: a\n\n")
    assert parser.reconnect_after == event.retry == delay


line = st.sampled_from(
    [
        "data: a",
        "data",
        "data:\u20ac b",
        "id: 1",
        "id",
        "id:\0",
        ":",
        "event: e",
        "x",
        "",
    ]
)
text = st.lists(st.tuples(line, st.sampled_from(["\n", "\r", "\r\n"])), max_size=12)


@given(text, st.lists(st.integers(0, 99), max_size=9), st.booleans())
def test_events_do_not_depend_on_where_a_stream_is_divided(lines, cuts, mark):
    whole = ("\ufeff" * mark + "".join(map("".join, lines))).encode()
    cuts = sorted(cut for cut in cuts if cut < len(whole))
    bounds = zip([0, *cuts], [*cuts, len(whole)], strict=True)
    divided, parser = parse(*(whole[start:end] for start, end in bounds))
    events, other = parse(whole)
    assert divided == events
    assert parser.last_event_id == other.last_event_id
    assert parse(*(whole[at : at + 1] for at in range(len(whole))))[0] == events


def test_bytes_that_are_not_utf_8_are_replaced():
    events, _ = parse(b"data: \xff\xe2\x82\n\n")
    assert events == [message("\ufffd\ufffd")]


def fail():
    raise OSError("the status is an error")


def begin(stream, status=200, kind="text/event-stream"):
    check = fail if status >= 400 else lambda: None
    return stream.begin(Reply(status, {"content-type": kind}, (), check))


@pytest.mark.parametrize(
    "kind", ["text/event-stream", "Text/Event-Stream ;charset=utf-8"]
)
def test_a_reply_of_this_type_is_an_event_stream(kind):
    assert begin(EventStream(""), kind=kind) is True


@pytest.mark.parametrize(
    ("status", "kind"),
    [(200, ""), (200, "application/json"), (206, "text/event-stream"), (302, "")],
)
def test_another_reply_ends_the_stream(status, kind):
    with pytest.raises(GiveUp) as caught:
        begin(EventStream(""), status, kind)
    assert isinstance(caught.value.cause, EventStreamError)


def test_no_content_ends_the_stream_without_an_error():
    assert begin(EventStream("4"), 204) is False


def test_headers_of_the_first_request_and_of_the_next():
    stream = EventStream("")
    first = {"accept": "text/event-stream", "cache-control": "no-store"}
    assert stream.request_headers() == first
    begin(stream)
    [*stream.read(b"id:  7 \ndata: a\n\n")]
    assert stream.request_headers() == {**first, "last-event-id": "7"}
    assert EventStream("4").request_headers()["last-event-id"] == "4"


def test_a_new_connection_begins_with_a_new_line_and_the_last_id():
    stream = EventStream("")
    begin(stream)
    assert [*stream.read(b"retry: 3\nid: 1\ndata: a\n\nid: 2\ndata: half")] == [
        message("a", "1", retry=3)
    ]
    assert (stream.gap(), stream.last_event_id) == (None, "1")
    begin(stream)
    assert stream.requested_delay(None) == 0.003
    assert [*stream.read(b"data: b\n\n")] == [message("b", "1")]
    assert "id '1'" in stream.gap()
    begin(stream)
    assert "id '1'" in stream.gap()
    assert stream.position() == {"last_event_id": "1", "seen": 2}


@pytest.mark.parametrize("status", [400, 410])
def test_what_is_lost_is_told(status):
    stream = EventStream("")
    with pytest.raises(OSError, match="the status is an error"):
        begin(stream, status)
    begin(stream)
    [*stream.read(b"data: a\n\n")]
    with pytest.raises(GiveUp) as caught:
        begin(stream, status)
    assert str(caught.value.cause) == (
        f"the event stream cannot continue: the server answered with status {status}: "
        "events behind the last one are lost"
    )
    assert isinstance(caught.value.cause.__cause__, OSError)


def test_a_delay_with_many_digits_is_the_longest_one():
    delays = [
        event.retry
        for text in ("5" + "0" * 40, "0" * 40 + "5", "0" * 40)
        for event in EventParser("").feed(f"retry: {text}\ndata: x\n\n".encode())
    ]
    assert delays == [366 * 86_400_000, 5, 0]
