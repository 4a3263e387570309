"""What the history keeps of failures before the last: no sockets, no large results."""

import enum
import io
import urllib.request
import weakref
from types import SimpleNamespace
from urllib.error import HTTPError

import pytest

from retrykit import (
    Policy,
    RetryAfter,
    RetryError,
    current_state,
    last_result,
    retry,
    state_of,
)
from retrykit._core.failures import ResultRecord
from tests._support.scripted_server import answer, serve

BUSY = Policy(schedule=[0] * 9, on=Exception, max_attempts=5)


MADE = []


def http_error(body=b"busy"):
    error = HTTPError("http://localhost/", 503, "Unavailable", {}, io.BytesIO(body))
    MADE.append(error)
    return error


@pytest.fixture(autouse=True)
def all_errors_are_closed_in_the_end():
    yield
    # Or Python 3.14 warns, in a later test.
    while MADE:
        MADE.pop().close()


class ClientError(Exception):
    """An error of a client, with its response."""

    def __init__(self, response):
        super().__init__("503")
        self.response = response


def failing(make_error, seen):
    """Return a function that counts the open errors before each attempt."""
    errors = []

    def fetch():
        seen.append(sum(not is_closed(error) for error in errors))
        errors.append(make_error())
        raise errors[-1]

    return fetch


def is_closed(error):
    while not hasattr(error, "closed"):
        error = error.response if hasattr(error, "response") else error.__cause__
    return error.closed


def chained():
    error = ValueError("no answer")
    error.__cause__ = http_error()
    return error


OPEN = {
    "a response that is an error": http_error,
    "an error with a response": lambda: ClientError(http_error()),
    "an error with a response that is iterated": lambda: ClientError(Iterated()),
    "an error raised from a response": chained,
    "a group of responses": lambda: ExceptionGroup("all", [http_error()]),
}


class Iterated:
    """A response as that of requests."""

    closed = False

    def iter_content(self):
        raise AssertionError

    def close(self):
        self.closed = True


@pytest.mark.parametrize("kind", [each for each in OPEN if "group" not in each])
def test_only_the_last_error_stays_open(backend, clock, kind):
    seen = []
    with pytest.raises(Exception, match=r"503|no answer") as caught:
        backend(BUSY)(failing(OPEN[kind], seen))()
    assert seen == [0, 1, 1, 1, 1]
    assert [is_closed(x) for x in state_of(caught.value).errors] == 4 * [True] + [False]


def test_the_errors_of_an_earlier_group_are_closed(backend, clock):
    groups = []

    def fetch():
        groups.append(OPEN["a group of responses"]())
        raise groups[-1]

    with pytest.raises(ExceptionGroup):
        backend(BUSY)(fetch)()
    closed = [is_closed(each.exceptions[0]) for each in groups]
    assert closed == 4 * [True] + [False]


def test_the_body_of_the_final_error_can_be_read(backend, clock):
    with pytest.raises(HTTPError) as caught:
        backend(BUSY)(failing(http_error, []))()
    assert caught.value.read() == b"busy"


@pytest.mark.needs("sockets")
def test_a_failed_request_of_urllib_holds_one_socket(clock):
    sockets = []

    @retry(BUSY)
    def fetch(url):
        sockets.append(sum(each.error.fp.fp is not None for each in state().failures))
        return urllib.request.urlopen(url).read()  # noqa: S310  of a local server

    state = current_state
    with serve(answer(503, body=b"x" * 100_000)) as server:
        with pytest.raises(HTTPError) as caught:
            fetch(server.url)
        assert sockets == [0, 1, 1, 1, 1]
        assert len(caught.value.read()) == 100_000


def test_a_rejected_result_closes_the_error_before_it(backend, clock):
    error, results = http_error(), iter([1, 2])

    def fetch():
        if not hasattr(error, "raised"):
            error.raised = True
            raise error
        return next(results)

    backend(BUSY, on_result=lambda result: result < 2)(fetch)()
    assert error.closed


@pytest.mark.parametrize(
    "settings", [{"keep_tracebacks": True}, {"raises": "group"}], ids=str
)
def test_errors_that_keep_their_frames_stay_open(backend, clock, settings):
    seen = []
    with pytest.raises(Exception, match=r"503|gave up"):
        backend(BUSY, **settings)(failing(http_error, seen))()
    assert seen == [0, 1, 2, 3, 4]


def test_an_error_that_is_raised_again_stays_open(backend, clock):
    error = http_error()

    def fetch():
        raise error

    with pytest.raises(HTTPError):
        backend(BUSY)(fetch)()
    assert error.read() == b"busy"


def test_what_the_next_error_shares_stays_open(backend, clock):
    response = http_error()

    def fetch():
        raise ClientError(response)

    with pytest.raises(ClientError):
        backend(BUSY)(fetch)()
    assert response.read() == b"busy"


class OpenTradeError(Exception):
    """An error whose `close` has another meaning."""

    def close(self):
        raise AssertionError


class AsyncResponse:
    """A response that cannot be closed without an event loop."""

    def read(self):
        raise AssertionError

    async def close(self):
        raise AssertionError


class UnreadableError(Exception):
    """An error without a response, and without an attribute of that name."""

    note = None

    @property
    def response(self):
        raise LookupError


OTHERS = {
    "with a close of its own": OpenTradeError,
    "with an async close": lambda: ClientError(AsyncResponse()),
    "with a close that fails": lambda: ClientError(Broken()),
    "with a property that fails": lambda: with_attribute(UnreadableError()),
}


class Broken(AsyncResponse):
    """A response that cannot be closed at all."""

    def close(self):
        raise OSError


def with_attribute(error):
    error.attribute = 1
    return error


@pytest.mark.parametrize("kind", OTHERS)
def test_other_errors_are_raised_as_they_are(backend, clock, kind):
    errors = []

    def fetch():
        errors.append(with_attribute(OTHERS[kind]()))
        raise errors[-1]

    with pytest.raises(type(OTHERS[kind]())) as caught:
        backend(BUSY)(fetch)()
    assert caught.value is errors[-1]


class Report:
    """A result that may be large."""

    def __init__(self, number):
        self.number = number

    def __repr__(self):
        return f"Report({self.number})"


def test_only_the_newest_rejected_result_is_kept(backend, clock):
    alive, known = [], []

    def fetch():
        report = Report(len(known))
        known.append(weakref.ref(report))
        alive.append(sum(each() is not None for each in known) - 1)
        return report

    policy = BUSY.replace(on_result=lambda report: True)
    with pytest.raises(RetryError) as caught:
        backend(policy)(fetch)()
    assert alive == [0, 1, 1, 1, 1]
    *before, last = [each.result for each in state_of(caught.value).failures]
    kind = f"{__name__}.Report"
    assert before == [ResultRecord(kind, f"Report({number})") for number in range(4)]
    assert last.number == 4
    number = backend(policy, fallback=last_result)(lambda: Report(7))().number
    assert number == 7


class Phase(enum.Enum):
    QUEUED = 1


SMALL = {
    "none": None,
    "a number": 2.5,
    "a large number": 10**100,
    "a text": "queued",
    "data": {"status": ["queued", None, {"at": (1, True)}]},
    "a member of an enumeration": Phase.QUEUED,
    "data with one": [Phase.QUEUED, b"queued"],
}


@pytest.mark.parametrize("kind", SMALL)
def test_a_small_result_is_kept(backend, clock, kind):
    states = []
    policy = BUSY.replace(on_result=lambda result: True, fallback=states.append)
    backend(policy)(lambda: SMALL[kind])()
    assert [each.result for each in states[0].failures] == 5 * [SMALL[kind]]


def endless():
    values = []
    values.append(values)
    return values


LARGE = {
    "bytes": lambda: b"\0" * 5_000_000,
    "text": lambda: "https://user:secret@host/" + "x" * 5_000_000,
    "a number": lambda: 1 << 5_000_000,
    "many values": lambda: list(range(50_000)),
    "data with a large value": lambda: {"body": [bytearray(10**6)]},
    "data with large values": lambda: {"bodies": ["x" * 6_000, "y" * 6_000]},
    "data that contains itself": endless,
}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", LARGE)
def test_of_a_large_result_a_record_is_kept(backend, clock, kind):
    states = []
    policy = BUSY.replace(on_result=lambda result: True, fallback=states.append)
    backend(policy)(LARGE[kind])()
    *before, last = [each.result for each in states[0].failures]
    assert {type(each) for each in before} == {ResultRecord}
    assert all(len(each.text) <= 200 for each in before)
    assert "secret" not in before[0].text
    assert type(last) is type(LARGE[kind]())


def test_what_release_leaves_is_kept(backend, clock):
    class Rejects:
        def __call__(self, response):
            return True

        def release(self, response):
            response.body = None

    policy = BUSY.replace(on_result=Rejects())
    with pytest.raises(RetryError) as caught:
        backend(policy)(lambda: SimpleNamespace(body=b"x"))()
    results = [each.result for each in state_of(caught.value).failures]
    assert [each.body for each in results] == 4 * [None] + [b"x"]


def test_a_result_before_an_error_is_released_too(backend, clock):
    states = []

    def fetch():
        if states[-1:] == [1]:
            raise OSError
        states.append(1)
        return bytearray(10**6)

    with pytest.raises(OSError, match="gave up") as caught:
        backend(BUSY, on_result=lambda result: True)(fetch)()
    assert type(state_of(caught.value).failures[0].result) is ResultRecord


@pytest.mark.parametrize("on", [Exception, lambda _: True], ids=["a type", "code"])
def test_an_earlier_cause_of_a_signal_keeps_its_own_frames(on, clock):
    def lookup():
        raise KeyError("the cause")

    def begin():
        try:
            lookup()
        except KeyError:
            raise RetryAfter(0)  # noqa: B904  the cause is its context

    def fetch(steps):
        steps.pop()()
        raise ConnectionError

    def end():
        pass

    with pytest.raises(ConnectionError) as caught:
        Policy(schedule=[0, 0], on=on).call(fetch, [end, end, begin])
    first = state_of(caught.value).to_dict()["failures"][0]["error"]
    assert first["type"] == "KeyError"
    assert "in lookup" in first["traceback"]
    assert "in fetch" not in first["traceback"]
