"""The Retry of a policy as a value, never changed; its end, and where it stands."""

import gc
import logging
import pickle
import threading
import weakref

import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter

from retrykit import ConfigError, StopReason, retry, state_of
from retrykit.integrations import requests as for_requests, urllib3 as retries
from retrykit.integrations.urllib3 import PolicyRetry
from retrykit.state.events import AttemptStarted, GaveUp, Succeeded
from retrykit.testing import disable_retries, virtual_time
from tests._support.scripted_server import (
    answer,
    close,
    reset,
    serve,
)


@pytest.fixture
def clock():
    # A connection that is kept is no reason for time to stand still.
    with virtual_time(stall_timeout=0.02) as clock:
        yield clock


def pool(policy=None, **changes):
    if not changes and policy is None:
        changes = {"schedule": [1, 2]}
    return urllib3.PoolManager(retries=PolicyRetry(policy, **changes))


def test_a_retry_is_a_value_that_no_request_changes(clock):
    shared = PolicyRetry(schedule=[1, 2])
    before = dict(vars(shared))
    with serve(answer(503), answer(), answer(503), answer()) as server:
        client = urllib3.PoolManager(retries=shared)
        first = client.request("GET", server.url)
        assert vars(shared) == before
        again = client.request("GET", server.url, retries=first.retries)
        assert (len(first.retries.history), len(again.retries.history)) == (1, 2)
        assert (state_of(first).attempt, state_of(again).attempt) == (2, 2)
        assert state_of(first).status == "succeeded"
        # A call that is over is kept by what came of it alone.
        assert first.retries.state is None
        assert state_of(again) is not state_of(first)
        assert shared.state is None
        client.clear()


def test_threads_share_one_retry():
    found = []
    with serve(answer(503), answer()) as server, pool(schedule=[0, 0]) as client:

        def work():
            answers = (client.request("GET", server.url) for _ in range(10))
            found.extend(response.status for response in answers)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (found, len(server.seen)) == ([200] * 80, 81)


def test_what_sleeps_can_be_interrupted(clock):
    told = []

    def interrupt(event):
        told.append(event)
        if len(told) == 3:
            clock.sleep = stop

    def stop(_):
        raise KeyboardInterrupt

    watched = pool(schedule=[1], observers=[interrupt])
    with serve(answer(503)) as server, watched as client:
        with pytest.raises(KeyboardInterrupt) as caught:
            client.request("GET", server.url)
        assert state_of(caught.value).stop_reason is StopReason.CANCELLED
        assert isinstance(told[-1], GaveUp)


def test_observers_are_told_of_every_attempt(clock):
    told = []
    with serve(answer(503), answer()) as server, pool(schedule=[1]) as client:
        client.request("GET", server.url)
    with serve() as server, pool(observers=[told.append]) as client:
        client.request("GET", server.url)
        assert [type(event) for event in told] == [AttemptStarted, Succeeded]


def test_it_is_shown_as_it_is_written():
    made = PolicyRetry(max_attempts=3)
    assert repr(made) == f"PolicyRetry({retries.policy(max_attempts=3)!r})"
    assert made.sleep() is None
    assert made.sleep_for_retry(None) is False


@pytest.mark.parametrize("most", [None, 1500])
def test_attempts_end_before_the_stack_of_urllib3_does(most):
    endless = pool(max_attempts=most, schedule=[0] * 1500)
    with serve(answer(503)) as server, endless as client:
        response = client.request("GET", server.url)
        assert (response.status, len(server.seen)) == (503, 200)
        assert state_of(response).stop_reason is StopReason.ATTEMPTS


async def later(_):
    return True


def test_what_must_be_awaited_is_refused():
    with pytest.raises(ConfigError, match="needs aretry"):
        PolicyRetry(on=later)


def test_retries_are_disabled_where_tests_disable_them(clock):
    with serve(answer(503)) as server, pool(schedule=[1]) as client:
        with disable_retries():
            client.request("GET", server.url)
        assert len(server.seen) == 1


def test_it_shows_what_it_continues(clock, caplog):
    with serve(close(), answer()) as server, pool(schedule=[1]) as client:
        client.request("GET", server.url)
    shown = "<PolicyRetry of GET 127.0.0.1: is running: 2 attempts in 1s>"
    assert shown in caplog.text


def test_it_is_made_anew_with_other_redirects_only():
    made = PolicyRetry(max_attempts=3, redirect=5)
    assert urllib3.Retry.from_int(made) is made
    other = made.new(redirect=1, raise_on_redirect=False)
    assert (made.redirect, other.redirect, other.raise_on_redirect) == (5, 1, False)
    assert repr(other) == repr(made)
    assert repr(pickle.loads(pickle.dumps(made))) == repr(made)  # noqa: S301  our own


@pytest.mark.parametrize("step", [answer(503), reset()], ids=["status", "reset"])
def test_a_retry_in_an_adapter_in_a_decorated_function_does_not_multiply(clock, step):
    def fetch():
        client.get(server.url).raise_for_status()

    fetch = retry(for_requests.policy(max_attempts=3, schedule=[1, 1]))(fetch)
    with serve(step) as server, requests.Session() as client:
        client.mount("http://", HTTPAdapter(max_retries=PolicyRetry(schedule=[1, 1])))
        with pytest.raises(requests.RequestException) as caught:
            fetch()
        assert (len(server.seen), clock.sleeps) == (3, [1.0, 1.0])
        assert state_of(caught.value).stop_reason is StopReason.NESTED
        assert state_of(caught.value).nested_state.attempt == 3


def test_a_response_of_requests_has_the_history_of_its_raw_one(clock):
    with serve(answer(503)) as server, requests.Session() as client:
        client.mount("http://", HTTPAdapter(max_retries=PolicyRetry(schedule=[1, 2])))
        response = client.get(server.url)
        assert state_of(response).attempt == 3
        with pytest.raises(requests.HTTPError) as caught:
            response.raise_for_status()
        assert state_of(caught.value).attempt == 3


def test_what_is_raised_is_not_kept(caplog):
    # What urllib3 logs has the error in it, and is kept for the test to look at.
    # Of the reason urllib3 itself makes a ring, with its frames.
    caplog.set_level(logging.ERROR, "urllib3")

    def called(client):
        try:
            client.request("GET", server.url)
        except urllib3.exceptions.MaxRetryError as error:
            return weakref.ref(error)

    gc.disable()
    try:
        with serve(close()) as server, pool(schedule=[0, 0]) as client:
            assert called(client)() is None
    finally:
        gc.enable()


def test_nothing_is_kept_of_a_response():
    gc.disable()
    try:
        with serve(answer(503)) as server, pool(schedule=[0, 0]) as client:
            response = client.request("GET", server.url)
            kept = [weakref.ref(x.result) for x in state_of(response).failures]
            del response
        assert [each() for each in kept] == [None] * 3
    finally:
        gc.enable()
