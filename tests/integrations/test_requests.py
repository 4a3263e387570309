"""The requests integration, against servers with real faults."""

import contextlib
import io
import logging
import pickle
import threading

import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.auth import HTTPDigestAuth
from requests.exceptions import ChunkedEncodingError, ReadTimeout, TooManyRedirects

from retrykit import Policy, StopReason, retry, state_of
from retrykit._core.timeouts import AsArgument
from retrykit.budgets import TokenBucket
from retrykit.integrations import requests as retries
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
}
BODIES = {
    "cut": cut(10),
    "cut, chunked": cut(10, chunked=True),
    "reset": reset_in_body(10),
}


@pytest.fixture
def clock():
    # An idle connection must not stop virtual time for long.
    with virtual_time(stall_timeout=0.02) as clock:
        yield clock


def session(policy=None, adapter=None, **changes):
    client = requests.Session()
    client.trust_env = False
    if not changes and policy is None:
        changes = {"schedule": [1, 2]}
    client.mount("http://", retries.RetryAdapter(policy, adapter, **changes))
    return client


@contextlib.contextmanager
def served(*steps, **changes):
    with serve(*steps) as server, session(**changes) as client:
        yield server, client


def bodies(server):
    return [seen.body for seen in server.seen]


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_transient_status_is_retried(clock, status):
    with serve(answer(status), answer()) as server, session() as client:
        response = client.get(server.url)
        assert (response.status_code, response.text) == (200, "ok")
        assert clock.sleeps == [1.0]
        [failure] = state_of(response).failures
        assert failure.result.status_code == status
        assert state_of(response).stop_reason is StopReason.SUCCEEDED
        assert state_of(response).name == "GET 127.0.0.1"


class TestRequestPolicy:
    @pytest.mark.parametrize(
        ("policy", "attempts"),
        [(None, 1), (Policy(schedule=[0]), 2), (Policy(schedule=[0] * 4), 5)],
        ids=["none", "less", "more"],
    )
    def test_applies_in_its_block(self, clock, policy, attempts):
        with serve(answer(503)) as server, session() as client:
            with retries.request_policy(policy):
                response = client.get(server.url)
            assert len(server.seen) == state_of(response).attempt == attempts
            assert state_of(client.get(server.url)).attempt == 3

    def test_applies_to_every_request_of_a_redirect(self, clock):
        with serve(redirect("/x"), answer(503)) as server, session() as client:
            with retries.request_policy(None):
                assert client.get(server.url).status_code == 503
        assert len(server.seen) == 2

    def test_an_inner_block_wins(self, clock):
        with serve(answer(503)) as server, session() as client:
            with retries.request_policy(None):
                with retries.request_policy(Policy(schedule=[0])):
                    assert state_of(client.get(server.url)).attempt == 2
                assert state_of(client.get(server.url)).attempt == 1

    def test_applies_only_in_its_own_thread(self):
        seen = []
        # The clock of the test is not that of the thread.
        with serve(answer(503)) as server, session(schedule=[0, 0]) as client:

            def get():
                seen.append(state_of(client.get(server.url)).attempt)

            with retries.request_policy(None):
                thread = threading.Thread(target=get)
                thread.start()
                thread.join()
        assert seen == [3]


@pytest.mark.parametrize("status", [200, 204, 304, 400, 401, 404, 501])
def test_other_statuses_are_not_retried(clock, status):
    with serve(answer(status)) as server, session() as client:
        assert client.get(server.url).status_code == status
        assert (len(server.seen), clock.sleeps) == (1, [])


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_an_attempt_without_a_response_is_retried(clock, failure):
    with serve(failure, answer()) as server, session() as client:
        assert client.get(server.url).ok
        assert (len(server.seen), clock.sleeps) == (2, [1.0])
        assert client.get(server.url).ok
        assert server.accepted == 2


def test_a_refused_connection_is_retried(clock):
    listen = [lambda _: faults.listen()]
    with (
        serve() as server,
        proxy(server.port, refused(), through()) as faults,
        session(observers=listen) as client,
    ):
        assert client.get(f"http://127.0.0.1:{faults.port}").ok


def test_timeouts_are_retried_and_raised_as_those_of_requests(clock):
    with serve(hang()) as server, session() as client:
        with pytest.raises(ReadTimeout) as caught:
            client.get(server.url, timeout=0.05)
        errors = state_of(caught.value).errors
        assert errors[-1] is caught.value
        assert [type(error) for error in errors] == [ReadTimeout] * 3
        assert caught.value.__notes__ == [
            "retrykit: gave up after 3 attempts in 3 s: the schedule has ended"
        ]


def test_the_last_response_is_returned_unread_and_the_others_are_closed(clock):
    with serve(answer(503, body=b"x" * 10**6)) as server, session() as client:
        with client.get(server.url, stream=True) as response:
            assert response.status_code == 503
            assert server.wait_for_open(1)
            assert state_of(response).stop_reason is StopReason.SCHEDULE_ENDED
            assert len(response.content) == 10**6
        assert [x.raw.closed for x in sleeps_and_bodies(response)] == [True] * 3
        assert clock.sleeps == [1.0, 2.0]
    assert server.wait_for_open(0)


def sleeps_and_bodies(response):
    return [failure.result for failure in state_of(response).failures]


def test_methods_that_are_not_idempotent_are_sent_once(clock, caplog):
    caplog.set_level(logging.DEBUG, "retrykit")
    with serve(answer(503), reset()) as server, session() as client:
        response = client.post(server.url, data=b"pay")
        assert (response.status_code, len(server.seen), clock.sleeps) == (503, 1, [])
        assert "POST is retried only with an Idempotency-Key" in caplog.text
        with pytest.raises(requests.ConnectionError) as caught:
            client.patch(server.url)
        assert len(server.seen) == 2
        assert "PATCH is retried only with" in caught.value.__notes__[0]


def test_an_idempotency_key_or_the_methods_setting_allows_retries(clock):
    with serve(answer(503), answer()) as server, session() as client:
        client.post(server.url, data=b"pay", headers={"idempotency-key": "7"})
        assert bodies(server) == [b"pay", b"pay"]
    with served(answer(503), answer(), methods={"post"}) as (server, client):
        assert client.post(server.url, data=b"pay").ok
    with served(answer(503), methods=["PUT"]) as (server, client):
        assert client.get(server.url).status_code == 503
        assert len(server.seen) == 1


def file_read_to_the_middle():
    file = io.BytesIO(b"head, body")
    file.seek(6)
    return file


REPLAYED = {
    "bytes": (lambda: {"data": b"body"}, b"body"),
    "text": (lambda: {"data": "body"}, b"body"),
    "a form": (lambda: {"data": {"a": "1"}}, b"a=1"),
    "json": (lambda: {"json": [1]}, b"[1]"),
    "a file from its middle": (lambda: {"data": file_read_to_the_middle()}, b"body"),
    "a text file": (lambda: {"data": io.StringIO("body")}, b"body"),
}


@pytest.mark.parametrize(("options", "body"), REPLAYED.values(), ids=REPLAYED)
def test_a_body_is_sent_again_unchanged(clock, options, body):
    with serve(answer(503), reset(), answer()) as server, session() as client:
        assert client.put(server.url, **options()).ok
        assert bodies(server) == [body] * 3


def test_a_multipart_body_is_sent_again_unchanged(clock):
    with serve(answer(503), answer()) as server, session() as client:
        client.put(server.url, files={"file": io.BytesIO(b"body")})
        first, second = bodies(server)
        assert first == second
        assert b"body" in first


class Pipe(io.BytesIO):
    """A file that cannot be rewound."""

    def seekable(self):
        return False


STREAMS = {"an iterator": lambda: iter([b"bo", b"dy"]), "a pipe": lambda: Pipe(b"body")}


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_a_one_shot_body_is_sent_once(clock, caplog, stream):
    with serve(answer(503), reset()) as server, session() as client:
        assert client.put(server.url, data=stream()).status_code == 503
        assert "its body is a stream that cannot be sent again" in caplog.text
        with pytest.raises(requests.ConnectionError) as caught:
            client.put(server.url, data=stream())
        assert "pass bytes, a str or a seekable file" in caught.value.__notes__[0]
        assert bodies(server) == [b"body", b"body"]


def test_a_body_is_sent_again_along_a_redirect(clock):
    away = answer(307, [("Location", "/there")])
    steps = answer(503), away, answer(503), answer()
    with serve(*steps) as server, session() as client:
        response = client.put(server.url, data=file_read_to_the_middle())
        assert bodies(server) == [b"body"] * 4
        assert state_of(response).attempt == 2


@pytest.mark.parametrize(("sent", "nap"), DELAYS.values(), ids=DELAYS)
def test_retry_after_is_obeyed_or_ignored(clock, sent, nap):
    headers = [DATE, *(("Retry-After", value) for value in sent)]
    with serve(answer(429, headers), answer()) as server:
        with session(schedule=[1], max_elapsed=30, hint_jitter=0) as client:
            response = client.get(server.url)
        if nap is None:
            assert (response.status_code, clock.sleeps) == (429, [])
            assert state_of(response).stop_reason is StopReason.HINT
        else:
            assert (response.status_code, clock.sleeps) == (200, [nap])


def test_an_adapter_in_a_decorated_function_does_not_multiply_retries(clock):
    def fetch(url):
        response = client.get(url)
        response.raise_for_status()

    fetch = retry(retries.policy(max_attempts=3, schedule=[1, 1]))(fetch)
    with session(schedule=[1, 1]) as client:
        with serve(answer(503)) as server:
            with pytest.raises(requests.HTTPError):
                fetch(server.url)
            assert len(server.seen) == 3
        with serve(reset()) as server:
            with pytest.raises(requests.ConnectionError) as caught:
                fetch(server.url)
            assert len(server.seen) == 3
            assert state_of(caught.value).stop_reason is StopReason.NESTED


@pytest.mark.parametrize("broken", BODIES.values(), ids=BODIES)
def test_a_truncated_body_is_retried_by_a_decorator_but_not_the_adapter(clock, broken):
    fetch = retry(retries.policy(schedule=[5]))(lambda: client.get(server.url))
    with serve(broken, answer()) as server, session() as client:
        with pytest.raises(ChunkedEncodingError):
            client.get(server.url)
        assert len(server.seen) == 1
    with serve(broken, answer()) as server, session() as client:
        assert fetch().ok
        assert clock.sleeps == [5.0]


def test_a_redirect_loop_is_not_retried(clock):
    with serve(redirect("/")) as server, session() as client:
        client.max_redirects = 5
        with pytest.raises(TooManyRedirects):
            client.get(server.url)
        assert (len(server.seen), clock.sleeps) == (6, [])


def test_the_second_request_of_a_digest_is_retried_too(clock):
    challenge = answer(
        401, [("WWW-Authenticate", 'Digest realm="r", nonce="n", qop="auth"')]
    )
    with serve(challenge, answer(503), answer()) as server, session() as client:
        response = client.get(server.url, auth=HTTPDigestAuth("user", "word"))
        assert (response.status_code, clock.sleeps) == (200, [1.0])


TIMEOUTS = {
    "none": None,
    "a long one": 30,
    "a pair": (30, None),
    "of urllib3": urllib3.Timeout(30),
    "of urllib3, in all": urllib3.Timeout(total=30),
}


@pytest.mark.parametrize("timeout", TIMEOUTS.values(), ids=TIMEOUTS)
def test_an_attempt_timeout_shortens_the_given_timeout(clock, timeout):
    changes = {"schedule": [1], "attempt_timeout": AsArgument(0.05)}
    with served(hang(), answer(), **changes) as (server, client):
        response = client.get(server.url, timeout=timeout)
        assert isinstance(state_of(response).errors[0], ReadTimeout)


def test_an_attempt_timeout_lengthens_no_timeout(clock):
    with served(hang(), attempt_timeout=AsArgument(99)) as (server, client):
        with pytest.raises(ReadTimeout) as caught:
            client.get(server.url, timeout=0.01)
        assert "read timeout=0.01" in str(caught.value)


def test_an_attempt_without_remaining_time_times_out(clock):
    changes = {"max_elapsed": 0, "attempt_timeout": AsArgument(5)}
    with served(hang(), **changes) as (server, client):
        with pytest.raises(requests.Timeout):
            client.get(server.url)


def test_a_custom_policy_is_kept(clock):
    own = Policy(on_result=lambda x: x.text == "wait", schedule=[1], max_attempts=2)
    with serve(answer(503, body=b"wait"), answer(503)) as server:
        with session(own) as client:
            assert client.get(server.url).status_code == 503
        assert clock.sleeps == [1.0]


def prepared_request(server):
    return requests.Request("GET", server.url).prepare()


def test_a_custom_adapter_sends_and_is_closed(clock):
    class Own(HTTPAdapter):
        closed = False

        def add_headers(self, request, **options):
            request.headers["X-Own"] = repr(options)

        def close(self):
            self.closed = True
            super().close()

    own = Own(pool_maxsize=1, pool_block=True)
    with serve(answer(503), answer()) as server, session(adapter=own) as client:
        options = {"stream": True, "timeout": 5, "verify": False, "cert": "none"}
        options["proxies"] = {"ftp": server.url}
        with pytest.raises(OSError, match="certificate file"):
            client.get_adapter("http://").send(prepared_request(server), **options)
        options["cert"] = None
        client.get_adapter("http://").send(prepared_request(server), **options).close()
        assert [seen.headers["x-own"] for seen in server.seen] == [repr(options)] * 2
        client.close()
        assert own.closed


def test_connections_return_to_a_pool_of_one(clock):
    own = HTTPAdapter(pool_maxsize=1, pool_block=True)
    big = answer(503, body=b"x" * 10**6)
    with serve(big, big, answer()) as server, session(adapter=own) as client:
        assert client.get(server.url).ok


def test_a_session_can_be_pickled_with_its_adapter(clock):
    with serve(answer(503), answer()) as server:
        before = session(schedule=[3], methods=(x for x in ["POST"]))
        client = pickle.loads(pickle.dumps(before))  # noqa: S301  our own
        assert client.post(server.url).ok
        assert clock.sleeps == [3.0]


def test_threads_share_one_session():
    found = []
    with serve(answer(503), answer()) as server, session(schedule=[0, 0]) as client:

        def work():
            found.extend(client.get(server.url).status_code for _ in range(10))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (found, len(server.seen)) == ([200] * 80, 81)


def test_a_budget_pays_for_retries_and_is_repaid(clock):
    budget = TokenBucket(10, cost=5)
    with serve(answer(503), answer(), answer(503)) as server:
        with session(schedule=[0, 0, 0], budget=budget) as client:
            assert client.get(server.url).ok
            assert budget.balance == 10
            response = client.get(server.url)
        assert state_of(response).stop_reason is StopReason.BUDGET
        assert state_of(response).attempt == 3
        assert budget.balance == 0
