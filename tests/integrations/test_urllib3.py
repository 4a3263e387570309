"""The parts for urllib3 and its Retry, against servers that fail for real."""

import contextlib
import io
import logging
import pickle

import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.exceptions import (
    ConnectTimeoutError,
    MaxRetryError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
    ResponseError,
)

from retrykit import Policy, StopReason, retry, state_of
from retrykit.budgets import TokenBucket
from retrykit.integrations import requests as for_requests, urllib3 as retries
from retrykit.integrations.urllib3 import PolicyRetry
from retrykit.state.events import AttemptStarted, GaveUp
from retrykit.testing import virtual_time
from tests._support.fault_proxy import proxy, refused, through
from tests._support.scripted_server import (
    answer,
    close,
    cut,
    cut_in_head,
    garbage,
    hang,
    redirect,
    reset,
    reset_in_body,
    serve,
)

FAILURES = {
    "reset": reset(),
    "closed": close(),
    "cut in the head": cut_in_head(10),
    "garbage": garbage(),
    "cut": cut(10),
    "cut, chunked": cut(10, chunked=True),
    "reset in the body": reset_in_body(10),
}
HINTS = {
    "seconds": (["7"], 7.0),
    "a date": (["Sun, 06 Nov 1994 08:49:37 GMT"], 7.0),
    "malformed": (["soon"], 1.0),
    "negative": (["-5"], 1.0),
    "repeated": (["3", "9"], 9.0),
    "absurd": (["9" * 400], None),
    "beyond the time that is left": (["31"], None),
}
DATE = ("Date", "Sun, 06 Nov 1994 08:49:30 GMT")


@pytest.fixture
def clock():
    # A connection that is kept is no reason for time to stand still.
    with virtual_time(stall_timeout=0.02) as clock:
        yield clock


def pool(policy=None, **changes):
    if not changes and policy is None:
        changes = {"schedule": [1, 2]}
    return urllib3.PoolManager(retries=PolicyRetry(policy, **changes))


@contextlib.contextmanager
def served(*steps, **changes):
    with serve(*steps) as server, pool(**changes) as client:
        yield server, client


def bodies(server):
    return [seen.body for seen in server.seen]


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_status_that_passes_is_retried(clock, status):
    with serve(answer(status), answer()) as server, pool() as client:
        response = client.request("GET", server.url)
        assert (response.status, response.data, clock.sleeps) == (200, b"ok", [1.0])
        [failure] = state_of(response).failures
        assert failure.result.status == status
        assert state_of(response).stop_reason is StopReason.SUCCEEDED
        assert state_of(response).name == "GET 127.0.0.1"


@pytest.mark.parametrize("status", [200, 204, 304, 400, 401, 404, 501])
def test_a_status_that_stays_is_not(clock, status):
    asking = answer(status, [("Retry-After", "7")])
    with serve(asking) as server, pool() as client:
        response = client.request("GET", server.url)
        assert (response.status, len(server.seen), clock.sleeps) == (status, 1, [])
        assert state_of(response).stop_reason is StopReason.SUCCEEDED


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_an_attempt_without_a_whole_answer_is_retried(clock, failure):
    with serve(failure, answer()) as server, pool() as client:
        assert client.request("GET", server.url).data == b"ok"
        assert (len(server.seen), clock.sleeps) == (2, [1.0])


def test_a_port_where_nobody_listens_is_tried_again(clock):
    with serve() as server, proxy(server.port, refused(), through()) as faults:
        with pool(observers=[lambda _: faults.listen()]) as client:
            response = client.request("GET", f"http://127.0.0.1:{faults.port}")
        assert isinstance(state_of(response).errors[0], NewConnectionError)


def test_what_is_raised_is_an_error_of_urllib3_with_its_history(clock):
    with serve(hang()) as server, pool() as client:
        with pytest.raises(MaxRetryError) as caught:
            client.request("GET", server.url, timeout=0.05)
        error, state = caught.value, state_of(caught.value)
    assert isinstance(error.reason, ReadTimeoutError)
    assert error.__cause__ is error.reason is state.errors[-1]
    assert state.stop_reason is StopReason.SCHEDULE_ENDED
    assert state_of(error.reason).attempt == state.attempt == 3
    assert error.reason.__notes__ == [
        "retrykit: gave up after 3 attempts in 3s: the schedule has ended"
    ]


def test_an_error_that_is_none_to_retry_is_raised_at_once(clock):
    with serve(reset()) as server, pool(on=ValueError) as client:
        with pytest.raises(MaxRetryError) as caught:
            client.request("GET", server.url)
        assert state_of(caught.value).stop_reason is StopReason.NOT_RETRYABLE
        assert clock.sleeps == []


def test_the_last_response_is_returned_unread_and_the_others_are_closed(clock):
    with serve(answer(503, body=b"x" * 10**6)) as server, pool() as client:
        response = client.request("GET", server.url, preload_content=False)
        assert response.status == 503
        assert server.settled(open=1)
        assert state_of(response).stop_reason is StopReason.SCHEDULE_ENDED
        assert len(response.data) == 10**6
        found = [failure.result.closed for failure in state_of(response).failures]
        assert (found, clock.sleeps) == ([True] * 3, [1.0, 2.0])
        response.release_conn()
    assert server.settled(open=0)


def test_a_pool_of_one_connection_gets_each_back(clock):
    big = answer(503, body=b"x" * 10**6)
    with (
        serve(big, big, answer()) as server,
        urllib3.HTTPConnectionPool(
            "127.0.0.1", server.port, block=True, retries=PolicyRetry(schedule=[1, 2])
        ) as client,
    ):
        assert client.request("GET", "/", preload_content=False).status == 200


def test_what_is_not_idempotent_is_sent_once(clock, caplog):
    caplog.set_level(logging.DEBUG, "retrykit")
    with serve(answer(503), reset()) as server, pool() as client:
        response = client.request("POST", server.url, body=b"pay")
        assert (response.status, len(server.seen), clock.sleeps) == (503, 1, [])
        assert "POST is sent again only with an Idempotency-Key" in caplog.text
        # As urllib3 does it with a read error, if it may not be sent again.
        with pytest.raises(ProtocolError) as caught:
            client.request("PATCH", server.url)
        assert "PATCH is sent again only with" in caught.value.__notes__[0]
        assert state_of(caught.value).attempt == 1
        server.refuse()
        client.clear()
        with pytest.raises(MaxRetryError):
            client.request("PATCH", server.url)
        assert (len(server.seen), clock.sleeps) == (2, [])


def test_what_has_a_key_or_is_allowed_is_sent_again(clock):
    keyed = {"idempotency-key": "7"}
    with serve(answer(503), reset(), answer()) as server, pool() as client:
        client.urlopen("POST", server.url, body=b"pay", headers=keyed)
        assert bodies(server) == [b"pay"] * 3
    with served(answer(503), answer(), methods={"post"}) as (server, client):
        assert client.request("POST", server.url).status == 200
    with serve(answer(503), answer()) as server, pool() as client:
        anything = PolicyRetry(methods=None, schedule=[1])
        assert client.request("POST", server.url, retries=anything).status == 200


def from_the_middle():
    file = io.BytesIO(b"head, body")
    file.seek(6)
    return file


REPLAYED = {
    "bytes": lambda: b"body",
    "text": lambda: "body",
    "a list": lambda: [b"bo", b"dy"],
    "a file from its middle": from_the_middle,
    "a text file": lambda: io.StringIO("body"),
}


@pytest.mark.parametrize("body", REPLAYED.values(), ids=REPLAYED)
def test_a_body_is_sent_again_as_it_was(clock, body):
    with serve(answer(503), reset(), answer()) as server, pool() as client:
        assert client.request("PUT", server.url, body=body()).status == 200
        assert bodies(server) == [b"body"] * 3


class Pipe(io.BytesIO):
    """A file that cannot be taken back."""

    def seekable(self):
        return False

    def seek(self, *_):
        raise io.UnsupportedOperation


STREAMS = {"an iterator": lambda: iter([b"bo", b"dy"]), "a pipe": lambda: Pipe(b"body")}


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_a_body_that_can_be_read_once_is_sent_once(clock, caplog, stream):
    with serve(answer(503), reset()) as server, pool() as client:
        assert client.request("PUT", server.url, body=stream()).status == 503
        assert "its body is a stream that cannot be sent again" in caplog.text
        with pytest.raises(ProtocolError) as caught:
            client.request("PUT", server.url, body=stream())
        assert "pass bytes, text or a file that can seek" in caught.value.__notes__[0]
        assert bodies(server) == [b"body", b"body"]


def test_a_request_that_is_not_seen_is_sent_once():
    with pytest.raises(MaxRetryError) as caught:
        PolicyRetry().increment("GET", "/", error=ConnectTimeoutError("late"))
    assert state_of(caught.value).attempt == 1


@pytest.mark.parametrize(("sent", "nap"), HINTS.values(), ids=HINTS)
def test_retry_after_is_understood_or_ignored(clock, sent, nap):
    headers = [DATE, *(("Retry-After", value) for value in sent)]
    with serve(answer(429, headers), answer()) as server:
        with pool(schedule=[1], max_elapsed=30) as client:
            response = client.request("GET", server.url)
        if nap is None:
            assert (response.status, clock.sleeps) == (429, [])
            assert state_of(response).stop_reason is StopReason.HINT
        else:
            assert (response.status, clock.sleeps) == (200, [nap])


def test_a_redirect_waits_for_nothing_and_minds_no_header(clock):
    there = [("Location", "/there"), ("Retry-After", "soon")]
    with serve(answer(302, there), answer()) as server:
        retries = PolicyRetry(schedule=[1])
        with urllib3.HTTPConnectionPool("127.0.0.1", server.port) as client:
            response = client.request("GET", "/", retries=retries)
        assert (response.status, clock.sleeps) == (200, [])


def test_redirects_are_counted_by_urllib3_and_their_loop_is_not_retried(clock):
    fetch = retry(retries.policy())(lambda: client.request("GET", server.url))
    with serve(redirect("/")) as server, pool(schedule=[1], redirect=3) as client:
        with pytest.raises(MaxRetryError) as caught:
            fetch()
        assert isinstance(caught.value.reason, ResponseError)
        assert (len(server.seen), clock.sleeps) == (4, [])
        with pytest.raises(MaxRetryError) as caught:
            client.request("GET", server.url)
        assert state_of(caught.value) is None
    with serve(redirect("/")) as server, pool(schedule=[1], redirect=False) as client:
        assert fetch().status == 302
        response = client.request("GET", server.url, redirect=False)
        assert (response.status, state_of(response)) == (302, None)


def test_one_history_goes_on_along_redirects(clock):
    told = []
    steps = answer(503), redirect("/1"), answer(503), redirect("/2"), answer(503)
    with serve(*steps) as server:
        with pool(schedule=[1, 2, 3], observers=[told.append]) as client:
            response = client.request("GET", server.url)
        assert (response.status, len(server.seen), clock.sleeps) == (503, 6, [1, 2, 3])
        assert len(state_of(response).failures) == 4
        assert [type(x) for x in told if isinstance(x, AttemptStarted | GaveUp)] == [
            *[AttemptStarted] * 4,
            GaveUp,
        ]


def test_a_redirect_loop_after_a_retry_has_its_history(clock):
    steps = answer(503), redirect("/")
    with serve(*steps) as server, pool(schedule=[1], redirect=2) as client:
        with pytest.raises(MaxRetryError) as caught:
            client.request("GET", server.url)
        assert state_of(caught.value).stop_reason is StopReason.NOT_RETRYABLE
        assert state_of(caught.value).attempt == 2


def test_retries_in_a_decorated_function_do_not_multiply(clock):
    policy = retries.policy(max_attempts=3, schedule=[1, 1])
    fetch = retry(policy)(lambda: client.request("GET", server.url))
    with pool(schedule=[1, 1]) as client:
        for step in answer(503), reset():
            with serve(step) as server:
                with pytest.raises(Exception) as caught:
                    fetch()
                assert len(server.seen) == 3
                assert state_of(caught.value).stop_reason is StopReason.NESTED
                assert state_of(caught.value).nested_state.attempt == 3


def test_an_adapter_of_requests_takes_one(clock):
    client = requests.Session()
    retrying = HTTPAdapter(max_retries=PolicyRetry(schedule=[1, 2]))
    client.mount("http://", retrying)
    client = pickle.loads(pickle.dumps(client))  # noqa: S301  our own
    fetch = retry(for_requests.policy(schedule=[1]))(lambda: client.get(server.url))
    with client:
        with serve(answer(503, [("Retry-After", "soon")]), answer()) as server:
            response = client.get(server.url)
            assert (response.status_code, clock.sleeps) == (200, [1.0])
            assert state_of(response.raw).attempt == 2
        with serve(reset()) as server:
            with pytest.raises(requests.ConnectionError) as caught:
                fetch()
            assert len(server.seen) == 3
            assert state_of(caught.value).stop_reason is StopReason.NESTED


def test_a_body_that_requests_streams_is_sent_once(clock):
    with serve(answer(503)) as server, requests.Session() as client:
        client.mount("http://", HTTPAdapter(max_retries=PolicyRetry(schedule=[1])))
        assert client.put(server.url, data=iter([b"body"])).status_code == 503
        assert bodies(server) == [b"body"]


def test_a_predicate_is_asked_about_the_response(clock):
    own = Policy(on_result=lambda x: x.data == b"wait", schedule=[1], max_attempts=2)
    with serve(answer(200, body=b"wait"), answer(503)) as server, pool(own) as client:
        assert client.request("GET", server.url).status == 503
        assert clock.sleeps == [1.0]


def test_what_a_predicate_raises_comes_out(clock):
    with serve() as server, pool(on_result=lambda _: 1 / 0) as client:
        with pytest.raises(ZeroDivisionError) as caught:
            client.request("GET", server.url)
        assert state_of(caught.value).stop_reason is StopReason.NOT_RETRYABLE


def test_a_budget_pays_for_retries_and_is_repaid(clock):
    budget = TokenBucket(10, cost=5)
    with serve(answer(503), answer(), answer(503)) as server:
        with pool(schedule=[0, 0, 0], budget=budget) as client:
            assert client.request("GET", server.url).status == 200
            assert budget.balance == 10
            response = client.request("GET", server.url)
        assert state_of(response).stop_reason is StopReason.BUDGET
        assert budget.balance == 0


def test_a_retry_of_one_attempt_leaves_all_to_the_decorator(clock):
    policy = retries.policy(schedule=[1, 2])
    fetch = retry(policy)(lambda: client.request("GET", server.url))
    steps = answer(503, [("Retry-After", "7")]), reset(), redirect("/"), answer()
    with served(*steps, max_attempts=1) as (server, client):
        assert fetch().status == 200
        assert (len(server.seen), clock.sleeps) == (4, [7.0, 2.0])


def test_the_decorator_retries_and_closes_what_it_refuses(clock):
    kept = []

    def fetch():
        wanted = {"preload_content": False, "pool_timeout": 1}
        kept.append(client.request("GET", "/", **wanted))
        return kept[-1]

    big = answer(503, body=b"x" * 10**6)
    with serve(big, answer()) as server:
        client = urllib3.HTTPConnectionPool("127.0.0.1", server.port, block=True)
        assert retries.policy(schedule=[1]).call(fetch).data == b"ok"
        assert (kept[0].closed, server.accepted) == (True, 2)
        client.close()
