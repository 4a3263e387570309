"""PolicyRetry: the policy decides for how long urllib3 retries what it retries."""

import logging
import pickle
import threading

import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.exceptions import MaxRetryError, ProtocolError

from retrykit import Policy
from retrykit.integrations.urllib3 import PolicyRetry
from retrykit.testing import virtual_time
from tests._support.scripted_server import answer, redirect, reset, serve


@pytest.fixture
def clock():
    # An idle connection must not stop virtual time for long.
    with virtual_time(stall_timeout=0.02) as clock:
        yield clock


def send(retry, *steps, method="GET"):
    """Send a request by a pool; return the number of requests, and its outcome."""
    with serve(*steps) as server, urllib3.PoolManager(retries=retry) as pool:
        try:
            outcome = pool.request(method, server.url, timeout=5).status
        except MaxRetryError as error:
            outcome = error
        return len(server.seen), outcome


def busy(*, seconds):
    return answer(503, [("Retry-After", seconds)])


def test_the_schedule_is_that_of_the_policy(clock):
    retry = PolicyRetry(schedule=[1, 5], status_forcelist=[503])
    assert send(retry, answer(503), answer(503), answer()) == (3, 200)
    assert clock.sleeps == [1, 5]
    count, error = send(retry, answer(503))
    assert (count, str(error.reason)) == (3, "too many 503 error responses")


def test_settings_are_added_to_those_of_a_policy(clock):
    retry = PolicyRetry(
        Policy(max_attempts=9, schedule=[3] * 9), max_attempts=2, status_forcelist=[503]
    )
    assert (retry.total, send(retry, answer(503))[0]) == (1, 2)
    assert clock.sleeps == [3]
    assert repr(retry).startswith("PolicyRetry(Policy(")


def test_a_retry_after_is_waited_exactly(clock):
    retry = PolicyRetry(max_attempts=2, schedule=[9])
    assert send(retry, busy(seconds="2"), answer()) == (2, 200)
    assert clock.sleeps == [2]
    deaf = PolicyRetry(
        schedule=[9], status_forcelist=[503], respect_retry_after_header=False
    )
    assert send(deaf, busy(seconds="2"), answer()) == (2, 200)
    assert clock.sleeps == [2, 9]


def test_a_retry_after_beyond_the_cap_ends_the_call(clock):
    retry = PolicyRetry(max_attempts=4, hint_cap=60, status_forcelist=[503])
    count, error = send(retry, busy(seconds="61"))
    assert (count, clock.sleeps) == (1, [])
    assert str(error.reason) == "too many 503 error responses"


def test_a_limit_of_time_counts_from_the_first_failure(clock):
    retry = PolicyRetry(max_elapsed=5, schedule=[2] * 9, status_forcelist=[503])
    assert send(retry, answer(503))[0] == 3
    assert clock.sleeps == [2, 2]


def test_without_a_limit_of_attempts_the_list_decides_as_in_urllib3(clock):
    limits = {"max_attempts": None, "max_elapsed": 2.5, "schedule": [1] * 9}
    assert send(PolicyRetry(**limits), busy(seconds="1")) == (1, 503)
    listed = PolicyRetry(**limits, status_forcelist=[503])
    assert send(listed, busy(seconds="1"))[0] == 3


def test_urllib3_may_have_a_lower_limit(clock):
    ended = []
    retry = PolicyRetry(
        status=1,
        schedule=[1] * 4,
        status_forcelist=[503],
        observers={"gave_up": lambda event: ended.append(event.state.stop_reason)},
    )
    assert send(retry, answer(503))[0] == 2
    assert [str(each) for each in ended] == ["gave_up"]


def test_a_policy_may_give_up_on_an_error(clock):
    retry = PolicyRetry(give_up_on=ProtocolError, schedule=[1])
    count, error = send(retry, reset())
    assert (count, type(error.reason)) == (1, ProtocolError)


def test_an_event_ends_the_wait(clock):
    event = threading.Event()
    retry = PolicyRetry(
        stop_event=event,
        schedule=[1],
        status_forcelist=[503],
        observers={"retry_scheduled": lambda _event: event.set()},
    )
    count, error = send(retry, answer(503))
    assert (count, str(error.reason)) == (1, "too many 503 error responses")


def test_an_interrupt_ends_the_call():
    ended = []

    def interrupt(_delay):
        raise KeyboardInterrupt

    retry = PolicyRetry(
        schedule=[1],
        status_forcelist=[503],
        sleep=interrupt,
        observers={"gave_up": lambda event: ended.append(event.state.stop_reason)},
    )
    with pytest.raises(KeyboardInterrupt):
        send(retry, answer(503))
    assert [str(each) for each in ended] == ["cancelled"]


def test_observers_and_the_log_are_told(clock, caplog):
    kinds = []
    retry = PolicyRetry(
        schedule=[1], status_forcelist=[503], observers=[lambda x: kinds.append(x.kind)]
    )
    with caplog.at_level(logging.WARNING, "retrykit.retries"):
        assert send(retry, answer(503), answer()) == (2, 200)
    [record] = caplog.records
    assert record.getMessage() == (
        "retrying GET 127.0.0.1 in 1 s after status 503 (attempt 2 of 2)"
    )
    assert kinds[-3:] == ["retry_scheduled", "attempt_started", "succeeded"]
    kinds.clear()
    send(retry, answer(503))
    assert kinds[-1] == "gave_up"


def test_a_redirect_begins_a_new_call_and_counts(clock):
    retry = PolicyRetry(max_attempts=4, schedule=[1, 2, 3], status_forcelist=[503])
    steps = answer(503), redirect("/a"), answer(503), answer()
    assert send(retry, *steps) == (4, 200)
    assert clock.sleeps == [1, 1]
    assert send(retry, *steps[:3], answer(503))[0] == 4
    assert clock.sleeps == [1, 1, 1, 1]


def test_a_post_is_not_sent_again_after_it_was_sent(clock):
    retry = PolicyRetry(schedule=[1], status_forcelist=[503])
    with pytest.raises(ProtocolError):
        send(retry, reset(), method="POST")
    assert send(retry, answer(503), method="POST") == (1, 503)


def test_each_request_of_a_session_begins_anew_also_of_a_copy(clock):
    retry = PolicyRetry(schedule=[1, 2], status_forcelist=[503])
    adapter = pickle.loads(pickle.dumps(HTTPAdapter(max_retries=retry)))  # noqa: S301
    steps = answer(503), answer(503), answer(), answer(503)
    with serve(*steps) as server, requests.Session() as session:
        session.mount("http://", adapter)
        assert session.get(server.url, timeout=5).ok
        with pytest.raises(requests.exceptions.RetryError):
            session.get(server.url, timeout=5)
        session.mount("http://", HTTPAdapter(max_retries=retry.new(total=0)))
        with pytest.raises(requests.exceptions.RetryError):
            session.get(server.url, timeout=5)
        assert len(server.seen) == 3 + 3 + 1
    assert clock.sleeps == [1, 2, 1, 2]
