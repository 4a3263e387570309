"""RetryPoolManager: its settings and its inner manager."""

import contextlib
import gc
import threading
import weakref

import pytest
import urllib3
from urllib3.exceptions import ProtocolError, ReadTimeoutError

from retrykit import AsArgument, ConfigError, Policy, StopReason, state_of
from retrykit.events import AttemptStarted, GaveUp, RetryScheduled, Succeeded
from retrykit.integrations import urllib3 as retries
from retrykit.integrations.urllib3 import RetryPoolManager
from retrykit.testing import disable_retries, virtual_time
from tests._support.scripted_server import answer, hang, redirect, reset, serve


@pytest.fixture
def clock():
    # An idle connection must not stop virtual time for long.
    with virtual_time(stall_timeout=0.02) as clock:
        yield clock


def pool(policy=None, **changes):
    if not changes and policy is None:
        changes = {"schedule": [1, 2]}
    return RetryPoolManager(policy, **changes)


def test_a_request_may_have_its_own_policy(clock):
    with serve(answer(503)) as server, pool(schedule=[1]) as client:
        patient = Policy(schedule=[5, 6])
        response = client.request("GET", server.url, policy=patient)
        assert (state_of(response).attempt, clock.sleeps) == (3, [5.0, 6.0])
        assert client.request("GET", server.url, policy=None).status == 503
        assert client.urlopen("GET", server.url, policy=None).status == 503
        assert len(server.seen) == 5


def test_an_invalid_policy_of_a_request_is_rejected(clock):
    with pool() as client, pytest.raises(ConfigError, match="policy must be a Policy"):
        client.request("GET", "http://127.0.0.1:1", policy=3)


RETRYING = {
    "a number": 3,
    "true": True,
    "a total": urllib3.Retry(1),
    "no limit": urllib3.Retry(None),
    "connections": urllib3.Retry(None, connect=2, read=0, status=0, other=0),
    "the rest": urllib3.Retry(connect=0, read=0, status=0),
}


@pytest.mark.parametrize("given", RETRYING.values(), ids=RETRYING)
def test_retries_of_urllib3_itself_are_rejected(given):
    with pytest.raises(ConfigError, match="retries must be False, or a Retry that"):
        RetryPoolManager(manager=urllib3.PoolManager(retries=given))
    with pool() as client, pytest.raises(ConfigError, match="retries must be False"):
        client.request("GET", "http://127.0.0.1:1", retries=given)


WITHOUT_RETRIES = {
    "false": False,
    "zero": 0,
    "no total": urllib3.Retry(False),
    "redirects alone": urllib3.Retry(connect=0, read=0, status=0, other=0, redirect=1),
}
without_retries = pytest.mark.parametrize(
    "given", WITHOUT_RETRIES.values(), ids=WITHOUT_RETRIES
)


@without_retries
@pytest.mark.parametrize("step", [answer(503), reset()], ids=["503", "reset"])
def test_a_request_that_asks_for_no_retries_is_sent_once(given, step, clock):
    with serve(step) as server, pool(schedule=[1, 2]) as client:
        try:
            outcome = client.request("GET", server.url, retries=given)
        except ProtocolError as error:
            outcome = error
        assert (len(server.seen), clock.sleeps) == (1, [])
        assert state_of(outcome).attempt == 1
        # The other requests are retried.
        with contextlib.suppress(ProtocolError):
            client.request("GET", server.url)
        assert len(server.seen) == 4


@without_retries
def test_a_policy_of_the_request_retries_whatever_urllib3_is_told(given, clock):
    policy = Policy(schedule=[1])
    with serve(answer(503)) as server, pool(schedule=[1, 2]) as client:
        client.request("GET", server.url, retries=given, policy=policy)
        assert len(server.seen) == 2


def test_a_request_without_retries_still_follows_its_redirects(clock):
    once = urllib3.Retry(connect=0, read=0, status=0, other=0, redirect=1)
    with serve(redirect("/there"), answer(503)) as server, pool() as client:
        assert client.request("GET", server.url, retries=once).status == 503
        assert [seen.path for seen in server.seen] == ["/", "/there"]


def test_none_as_retries_leaves_them_to_the_policy(clock):
    with serve(answer(503), answer()) as server, pool(schedule=[1]) as client:
        assert client.request("GET", server.url, retries=None).status == 200


def test_the_default_retries_of_urllib3_are_off(clock):
    with serve(reset()) as server, pool(max_attempts=1) as client:
        with pytest.raises(ProtocolError):
            client.request("GET", server.url)
        assert len(server.seen) == 1


def test_a_manager_shares_the_pools_of_the_inner_one(clock):
    inner = urllib3.PoolManager(headers={"X-Shop": "1"}, timeout=30)
    with serve(answer()) as server, pool(None, manager=inner) as client:
        assert client.request("GET", server.url).status == 200
        assert client.urlopen("GET", server.url).status == 200
        assert [seen.headers["x-shop"] for seen in server.seen] == ["1", "1"]
        assert len(inner.pools) == len(client.pools) == 1
        found = client.connection_from_url(server.url)
        assert found is inner.connection_from_url(server.url)
    assert len(inner.pools) == 0


def test_requests_go_through_a_proxy(clock):
    with serve(answer(503), answer()) as proxy:
        manager = urllib3.ProxyManager(proxy.url)
        with pool(None, manager=manager) as client:
            response = client.request("GET", "http://shop.example/cart")
            assert (response.status, client.proxy.host) == (200, "127.0.0.1")
        assert [x.path for x in proxy.seen] == ["http://shop.example/cart"] * 2
        assert state_of(response).name == "GET shop.example"


GIVEN_TIMEOUTS = {
    "none": {},
    "longer": {"timeout": 30},
    "of urllib3": {"timeout": urllib3.Timeout(connect=30, read=30)},
}


@pytest.mark.parametrize("given", GIVEN_TIMEOUTS.values(), ids=GIVEN_TIMEOUTS)
def test_an_attempt_timeout_bounds_the_timeout_of_urllib3(clock, given):
    limit = AsArgument(0.05)
    with serve(hang()) as server, pool(schedule=[1], attempt_timeout=limit) as client:
        with pytest.raises(ReadTimeoutError):
            client.request("GET", server.url, **given)
        assert len(server.seen) == 2


def test_a_shorter_timeout_is_kept(clock):
    inner = urllib3.PoolManager(timeout=0.05)
    limit = AsArgument(60)
    with serve(hang()) as server:
        with pool(max_attempts=1, manager=inner, attempt_timeout=limit) as client:
            with pytest.raises(ReadTimeoutError, match=r"read timeout=0\.05"):
                client.request("GET", server.url)


def test_threads_share_one_manager():
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


def test_a_delay_can_be_interrupted(clock):
    events = []

    def interrupt(event):
        events.append(event)
        if isinstance(event, RetryScheduled):
            clock.sleep = stop

    def stop(_):
        raise KeyboardInterrupt

    watched = pool(schedule=[1], observers=[interrupt])
    with serve(answer(503)) as server, watched as client:
        with pytest.raises(KeyboardInterrupt) as caught:
            client.request("GET", server.url)
        assert state_of(caught.value).stop_reason is StopReason.CANCELLED
        assert isinstance(events[-1], GaveUp)


def test_observers_are_notified_of_every_attempt(clock):
    events = []
    with serve() as server, pool(observers=[events.append]) as client:
        client.request("GET", server.url)
        assert [type(event) for event in events] == [AttemptStarted, Succeeded]


def test_its_repr_shows_the_policy():
    shown = f"RetryPoolManager({retries.policy(max_attempts=3)!r})"
    assert repr(RetryPoolManager(max_attempts=3)) == shown


async def later(_):
    return True


def test_an_async_condition_is_rejected():
    with pytest.raises(ConfigError, match="need aretry"):
        RetryPoolManager(on=later)


def test_disable_retries_applies(clock):
    with serve(answer(503)) as server, pool(schedule=[1]) as client:
        with disable_retries():
            client.request("GET", server.url)
        assert len(server.seen) == 1


def test_nothing_keeps_a_response():
    gc.disable()
    try:
        with serve(answer(503)) as server, pool(schedule=[0, 0]) as client:
            response = client.request("GET", server.url)
            references = [weakref.ref(x.result) for x in state_of(response).failures]
            del response
        assert [each() for each in references] == [None] * 3
    finally:
        gc.enable()
