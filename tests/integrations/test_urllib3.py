"""The urllib3 integration, against servers with real faults."""

import contextlib
import io
import logging

import pytest
import urllib3
from urllib3.exceptions import (
    EmptyPoolError,
    MaxRetryError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
    ResponseError,
)

from retrykit import Policy, StopReason, retry, state_of
from retrykit.budgets import TokenBucket
from retrykit.events import RetryScheduled
from retrykit.integrations import urllib3 as retries
from retrykit.integrations.urllib3 import RetryPoolManager
from retrykit.testing import virtual_time
from tests._support.fault_proxy import proxy, refused, through
from tests._support.retry_after_headers import DATE, DELAYS
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


@pytest.fixture
def clock():
    # An idle connection must not stop virtual time for long.
    with virtual_time(stall_timeout=0.02) as clock:
        yield clock


def pool(policy=None, **changes):
    if not changes and policy is None:
        changes = {"schedule": [1, 2]}
    return RetryPoolManager(policy, **changes)


@contextlib.contextmanager
def served(*steps, **changes):
    with serve(*steps) as server, pool(**changes) as client:
        yield server, client


def bodies(server):
    return [seen.body for seen in server.seen]


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_transient_status_is_retried(clock, status):
    with serve(answer(status), answer()) as server, pool() as client:
        response = client.request("GET", server.url)
        assert (response.status, response.data, clock.sleeps) == (200, b"ok", [1.0])
        [failure] = state_of(response).failures
        assert failure.result.status == status
        assert state_of(response).stop_reason is StopReason.SUCCEEDED
        assert state_of(response).name == "GET 127.0.0.1"


@pytest.mark.parametrize("status", [200, 204, 304, 400, 401, 404, 501])
def test_other_statuses_are_not_retried(clock, status):
    response_step = answer(status, [("Retry-After", "7")])
    with serve(response_step) as server, pool() as client:
        response = client.request("GET", server.url)
        assert (response.status, len(server.seen), clock.sleeps) == (status, 1, [])
        assert state_of(response).stop_reason is StopReason.SUCCEEDED


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_an_attempt_without_a_complete_response_is_retried(clock, failure):
    with serve(failure, answer()) as server, pool() as client:
        assert client.request("GET", server.url).data == b"ok"
        assert (len(server.seen), clock.sleeps) == (2, [1.0])


def test_a_refused_connection_is_retried(clock):
    def start_listening(event):
        if isinstance(event, RetryScheduled):
            faults.listen()

    with serve() as server, proxy(server.port, refused(), through()) as faults:
        with pool(observers=[start_listening]) as client:
            response = client.request("GET", f"http://127.0.0.1:{faults.port}")
        assert isinstance(state_of(response).errors[0], NewConnectionError)


def test_the_error_of_urllib3_is_raised_with_its_history(clock):
    with serve(hang()) as server, pool() as client:
        with pytest.raises(ReadTimeoutError) as caught:
            client.request("GET", server.url, timeout=0.05)
        state = state_of(caught.value)
    assert state.stop_reason is StopReason.SCHEDULE_ENDED
    assert state.errors[-1] is caught.value
    assert caught.value.__notes__ == [
        "retrykit: gave up after 3 attempts in 3 s: the schedule has ended"
    ]


def test_an_error_that_is_not_retryable_is_raised_at_once(clock):
    with serve(reset()) as server, pool(on=ValueError) as client:
        with pytest.raises(ProtocolError) as caught:
            client.request("GET", server.url)
        assert state_of(caught.value).stop_reason is StopReason.NOT_RETRYABLE
        assert clock.sleeps == []


def test_a_policy_matches_the_errors_that_urllib3_wraps(clock):
    with serve(reset(), answer()) as server, pool(on=ProtocolError) as client:
        assert client.request("GET", server.url).status == 200


def test_the_last_response_is_returned_unread_and_the_others_are_closed(clock):
    with serve(answer(503, body=b"x" * 10**6)) as server, pool() as client:
        response = client.request("GET", server.url, preload_content=False)
        assert response.status == 503
        assert server.wait_for_open(1)
        assert state_of(response).stop_reason is StopReason.SCHEDULE_ENDED
        assert len(response.data) == 10**6
        found = [failure.result.closed for failure in state_of(response).failures]
        assert (found, clock.sleeps) == ([True] * 3, [1.0, 2.0])
        response.release_conn()
    assert server.wait_for_open(0)


def test_rejected_responses_return_their_connections_to_the_pool(clock):
    big = answer(503, body=b"x" * 10**6)
    one = urllib3.PoolManager(maxsize=1, block=True)
    with serve(big, big, answer()) as server, pool(None, manager=one) as client:
        url = server.url
        streamed = client.request("GET", url, preload_content=False, pool_timeout=1)
        assert (streamed.status, streamed.read()) == (200, b"ok")


def test_a_connection_is_kept_if_the_body_was_read(clock):
    with serve(answer(503), answer()) as server, pool() as client:
        assert client.request("GET", server.url).status == 200
        assert server.accepted == 1


def test_methods_that_are_not_idempotent_are_sent_once(clock, caplog):
    caplog.set_level(logging.DEBUG, "retrykit")
    with serve(answer(503), reset()) as server, pool() as client:
        response = client.request("POST", server.url, body=b"pay")
        assert (response.status, len(server.seen), clock.sleeps) == (503, 1, [])
        assert "POST is retried only with an Idempotency-Key" in caplog.text
        with pytest.raises(ProtocolError) as caught:
            client.request("PATCH", server.url)
        assert "PATCH is retried only with" in caught.value.__notes__[0]
        assert state_of(caught.value).attempt == 1
        assert (len(server.seen), clock.sleeps) == (2, [])


def test_an_idempotency_key_or_the_methods_setting_allows_retries(clock):
    keyed = {"idempotency-key": "7"}
    with serve(answer(503), reset(), answer()) as server, pool() as client:
        client.urlopen("POST", server.url, body=b"pay", headers=keyed)
        assert bodies(server) == [b"pay"] * 3
    with served(answer(503), answer(), methods={"post"}) as (server, client):
        assert client.request("POST", server.url).status == 200
    with served(answer(503), answer(), methods=None) as (server, client):
        assert client.request("POST", server.url).status == 200


def file_read_to_the_middle():
    file = io.BytesIO(b"head, body")
    file.seek(6)
    return file


REPLAYED = {
    "bytes": lambda: b"body",
    "text": lambda: "body",
    "a list": lambda: [b"bo", b"dy"],
    "a file from its middle": file_read_to_the_middle,
    "a text file": lambda: io.StringIO("body"),
}


@pytest.mark.parametrize("body", REPLAYED.values(), ids=REPLAYED)
def test_a_body_is_sent_again_unchanged(clock, body):
    with serve(answer(503), reset(), answer()) as server, pool() as client:
        assert client.request("PUT", server.url, body=body()).status == 200
        assert bodies(server) == [b"body"] * 3


class Pipe(io.BytesIO):
    """A file that cannot be rewound."""

    def seekable(self):
        return False

    def seek(self, *_):
        raise io.UnsupportedOperation


STREAMS = {"an iterator": lambda: iter([b"bo", b"dy"]), "a pipe": lambda: Pipe(b"body")}


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_a_one_shot_body_is_sent_once(clock, caplog, stream):
    with serve(answer(503), reset()) as server, pool() as client:
        assert client.request("PUT", server.url, body=stream()).status == 503
        assert "its body is a stream that cannot be sent again" in caplog.text
        with pytest.raises(ProtocolError) as caught:
            client.request("PUT", server.url, body=stream())
        assert "pass bytes, a str or a seekable file" in caught.value.__notes__[0]
        assert bodies(server) == [b"body", b"body"]


@pytest.mark.parametrize(("sent", "nap"), DELAYS.values(), ids=DELAYS)
def test_retry_after_is_obeyed_or_ignored(clock, sent, nap):
    headers = [DATE, *(("Retry-After", value) for value in sent)]
    with serve(answer(429, headers), answer()) as server:
        with pool(schedule=[1], max_elapsed=30, hint_jitter=0) as client:
            response = client.request("GET", server.url)
        if nap is None:
            assert (response.status, clock.sleeps) == (429, [])
            assert state_of(response).stop_reason is StopReason.HINT
        else:
            assert (response.status, clock.sleeps) == (200, [nap])


def test_a_redirect_is_followed_at_once_and_its_retry_after_ignored(clock):
    there = [("Location", "/there"), ("Retry-After", "soon")]
    with serve(answer(302, there), answer()) as server, pool() as client:
        response = client.request("GET", server.url)
        assert (response.status, clock.sleeps) == (200, [])


def test_an_attempt_includes_the_redirects(clock):
    steps = redirect("/1"), answer(503), redirect("/2"), answer()
    with serve(*steps) as server, pool(schedule=[1, 2]) as client:
        response = client.request("GET", server.url)
        assert (response.status, len(server.seen), clock.sleeps) == (200, 4, [1])
        assert state_of(response).attempt == 2


def test_a_redirect_loop_is_not_retried(clock):
    fetch = retry(retries.policy())(lambda: client.request("GET", server.url))
    with serve(redirect("/")) as server, pool(schedule=[1]) as client:
        with pytest.raises(MaxRetryError) as caught:
            fetch()
        assert isinstance(caught.value.reason, ResponseError)
        assert state_of(caught.value).stop_reason is StopReason.NOT_RETRYABLE
        # urllib3 follows three by default.
        assert (len(server.seen), clock.sleeps) == (4, [])


def test_redirects_follow_the_settings_of_urllib3(clock):
    five = urllib3.Retry(None, connect=0, read=0, status=0, other=0, redirect=5)
    manager = urllib3.PoolManager(retries=five)
    with serve(redirect("/")) as server, pool(None, manager=manager) as client:
        with pytest.raises(MaxRetryError):
            client.request("GET", server.url)
        assert len(server.seen) == 6
        assert client.request("GET", server.url, retries=False).status == 302
        assert client.request("GET", server.url, redirect=False).status == 302
        assert client.urlopen("GET", server.url, False).status == 302
        with pytest.raises(MaxRetryError):
            client.request("GET", server.url, retries=0)
        assert (len(server.seen), clock.sleeps) == (10, [])


def test_a_pool_in_a_decorated_function_does_not_multiply_retries(clock):
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


def test_on_result_gets_the_response(clock):
    own = Policy(on_result=lambda x: x.data == b"wait", schedule=[1], max_attempts=2)
    with serve(answer(200, body=b"wait"), answer(503)) as server, pool(own) as client:
        assert client.request("GET", server.url).status == 503
        assert clock.sleeps == [1.0]


def test_an_error_of_on_result_is_raised(clock):
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


def test_a_manager_of_one_attempt_leaves_retries_to_a_decorator(clock):
    policy = retries.policy(schedule=[1, 2], hint_jitter=0)
    fetch = retry(policy)(lambda: client.request("GET", server.url))
    steps = answer(503, [("Retry-After", "7")]), reset(), redirect("/"), answer()
    with served(*steps, max_attempts=1) as (server, client):
        assert fetch().status == 200
        assert (len(server.seen), clock.sleeps) == (4, [7.0, 2.0])


def test_a_decorator_retries_and_closes_rejected_responses(clock):
    responses = []

    def fetch():
        options = {"preload_content": False, "pool_timeout": 1}
        responses.append(client.request("GET", "/", **options))
        return responses[-1]

    big = answer(503, body=b"x" * 10**6)
    with serve(big, answer()) as server:
        client = urllib3.HTTPConnectionPool(
            "127.0.0.1", server.port, block=True, retries=False
        )
        assert retries.policy(schedule=[1]).call(fetch).data == b"ok"
        assert (responses[0].closed, server.accepted) == (True, 2)
        client.close()


@pytest.mark.parametrize("released", [True, False])
def test_an_own_condition_closes_rejected_responses_by_its_release(clock, released):
    """As docs/http.md says; without it, the only connection is not free again."""

    def is_busy(response):
        return response.status == 503

    def fetch():
        options = {"preload_content": False, "pool_timeout": 0.01}
        return client.request("GET", "/", **options)

    if released:
        is_busy.release = retries.transient.release
    policy = retries.policy(schedule=[1], on=(), on_result=is_busy)
    big = answer(503, body=b"x" * 10**6)
    with serve(big, answer()) as server:
        client = urllib3.HTTPConnectionPool(
            "127.0.0.1", server.port, block=True, retries=False
        )
        if released:
            assert policy.call(fetch).data == b"ok"
        else:
            with pytest.raises(EmptyPoolError):
                policy.call(fetch)
        client.close()
