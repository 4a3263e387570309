"""What is asked and asserted of recorded calls."""

import asyncio
import functools
from inspect import cleandoc

import pytest
import trio

from retrykit import Policy, StopReason, aretry, retry, with_policy
from retrykit.testing import ScriptedFunction, record, virtual_time

POLICY = Policy(schedule=[1, 60], max_elapsed=None, on=OSError, name="fetch")


def succeed(name):
    Policy(name=name).call(int)


class Client:
    @retry(schedule=[0])
    def fetch(self):
        return "own"

    @classmethod
    @retry
    def made(cls):
        return "class"

    @staticmethod
    @retry
    def plain():
        return "static"

    part = functools.partialmethod(fetch)


class Service:
    """A callable object, which has no name of its own."""

    def __call__(self):
        return "ok"


DECORATED = {
    "method": (Client().fetch, "Client.fetch"),
    "unbound method": (functools.partial(Client.fetch, Client()), "Client.fetch"),
    "partialmethod": (Client().part, "Client.fetch"),
    "classmethod": (Client.made, "Client.made"),
    "staticmethod": (Client.plain, "Client.plain"),
    "under another decorator": (functools.cache(Client.plain), "Client.plain"),
    "callable object": (retry(Service()), "Service"),
    "partial": (retry(functools.partial(Service())), "Service"),
    "with_policy": (with_policy(Client().fetch, max_attempts=2), "Client.fetch"),
    "named by its policy": (retry(name="shop.serve")(Service()), "serve"),
}


class TestOf:
    def test_a_function_has_its_own_calls(self):
        @retry
        def fetch():
            return "ok"

        @retry
        def other():
            return "ok"

        with record() as recorded:
            fetch()
            other()
            fetch()
        assert recorded.of(fetch) == [recorded.calls[0], recorded.calls[2]]
        assert recorded.of(other) == [recorded.calls[1]]

    def test_a_function_is_not_meant_by_the_end_of_another_name(self):
        fetch = retry(ScriptedFunction(["ok"], name="fetch"))
        with record() as recorded:
            fetch()
            succeed("shop.fetch")
        assert recorded.of(fetch) == [recorded.calls[0]]
        assert recorded.of("fetch") == recorded.calls

    @pytest.mark.parametrize("name", ["shop.Client.fetch", "Client.fetch", "fetch"])
    def test_a_name_is_whole_or_its_end_after_a_dot(self, name):
        with record() as recorded:
            succeed("shop.Client.fetch")
            succeed("prefetch")
        assert recorded.of(name) == [recorded.calls[0]]

    @pytest.mark.parametrize("name", ["etch", "shop", "fetch.more", "Fetch"])
    def test_a_part_of_a_name_is_none(self, name):
        with record() as recorded:
            succeed("shop.fetch")
        assert recorded.of(name) == []

    @pytest.mark.parametrize(("fn", "end"), DECORATED.values(), ids=DECORATED)
    def test_whatever_is_decorated_has_its_calls(self, fn, end):
        with record() as recorded:
            fn()
        assert len(recorded.calls) == 1
        assert recorded.of(fn) == recorded.of(end) == recorded.calls

    def test_a_coroutine_function_has_its_calls(self):
        @aretry
        async def fetch():
            return "ok"

        with record() as recorded:
            asyncio.run(fetch())
            trio.run(fetch)
        assert recorded.of(fetch) == recorded.calls
        assert len(recorded.calls) == 2


def recorded_calls():
    """Return what is recorded of one call that succeeds and one that gives up."""
    fetch = ScriptedFunction(
        [ConnectionError("refused"), "ok", *[OSError] * 3], name="fetch"
    )
    with virtual_time(), record() as recorded:
        POLICY.run(fetch)
        POLICY.run(fetch)
        succeed("shop.load")
    return recorded


def retried(error):
    """Return what is recorded of a call that fails so, in the end."""
    script = ScriptedFunction([OSError, OSError, error], name="fetch")
    with virtual_time(), record() as recorded, pytest.raises(error):
        POLICY.call(script)
    return recorded


HOLD = {
    "attempts": lambda it: it.assert_attempts("fetch", 2, 3),
    "no calls": lambda it: it.assert_attempts("other"),
    "delays": lambda it: it.assert_delays("fetch", [1], [1, 60]),
    "no delays": lambda it: it.assert_delays("load", []),
    "delays, about": lambda it: it.assert_delays(
        "fetch", [1], pytest.approx([1.01, 59], rel=0.1)
    ),
    "succeeded": lambda it: it.assert_succeeded("load"),
    "gave up": lambda it: retried(OSError).assert_gave_up("fetch"),
    "gave up, why": lambda it: retried(OSError).assert_gave_up(
        "fetch", StopReason.SCHEDULE_ENDED
    ),
    "gave up, cancelled": lambda it: retried(KeyboardInterrupt).assert_gave_up(
        "fetch", StopReason.CANCELLED
    ),
}

FAIL = {
    "attempts of fetch: expected [2], got [2, 3]": (
        lambda it: it.assert_attempts("fetch", 2)
    ),
    "attempts of fetch: expected [], got [2, 3]": lambda it: it.assert_attempts(
        "fetch"
    ),
    "attempts of fetch: expected [3, 2], got [2, 3]": (
        lambda it: it.assert_attempts("fetch", 3, 2)
    ),
    "attempts of other: expected [1], got []": lambda it: it.assert_attempts(
        "other", 1
    ),
    "delays of fetch: expected [[1]], got [[1.0], [1.0, 60.0]]": (
        lambda it: it.assert_delays("fetch", [1])
    ),
    "delays of load: expected [], got [[]]": lambda it: it.assert_delays("load"),
    "outcomes of fetch: expected ['succeeded', 'succeeded'], "
    "got ['succeeded', 'gave up']": (lambda it: it.assert_succeeded("fetch")),
    "outcomes of other: expected ['succeeded'], got []": (
        lambda it: it.assert_succeeded("other")
    ),
    "outcomes of fetch: expected ['gave up', 'gave up'], "
    "got ['succeeded', 'gave up']": (lambda it: it.assert_gave_up("fetch")),
    "outcomes of fetch: expected ['elapsed', 'elapsed'], "
    "got ['succeeded', 'schedule ended']": (
        lambda it: it.assert_gave_up("fetch", StopReason.ELAPSED)
    ),
    "outcomes of other: expected ['gave up'], got []": lambda it: it.assert_gave_up(
        "other"
    ),
    "outcomes of other: expected ['attempts'], got []": (
        lambda it: it.assert_gave_up("other", StopReason.ATTEMPTS)
    ),
}


class TestAssertions:
    @pytest.mark.parametrize("hold", HOLD.values(), ids=HOLD)
    def test_that_hold_pass(self, hold):
        assert hold(recorded_calls()) is None

    @pytest.mark.parametrize(("message", "fail"), FAIL.items(), ids=FAIL)
    def test_that_do_not_hold_fail(self, message, fail):
        with pytest.raises(AssertionError) as caught:
            fail(recorded_calls())
        assert str(caught.value).split("\n")[:2] == [message, ""]

    def test_fail_with_the_history_of_every_such_call(self):
        with pytest.raises(AssertionError) as caught:
            recorded_calls().assert_attempts("fetch", 2)
        assert str(caught.value) == cleandoc("""
            attempts of fetch: expected [2], got [2, 3]

            fetch succeeded after 2 attempts in 1s
              attempt  began after  took  next after  outcome
              1        0s           0s    1s          ConnectionError: refused
              2        1s           0s                succeeded

            fetch gave up after 3 attempts in 1m1s: the schedule has ended
              attempt  began after  took  next after  outcome
              1        0s           0s    1s          OSError
              2        1s           0s    1m          OSError
              3        1m1s         0s                OSError
        """)

    def test_fail_with_the_names_that_there_are_where_the_one_is_not(self):
        with pytest.raises(AssertionError) as caught:
            recorded_calls().assert_attempts("fetsh", 2)
        assert str(caught.value) == cleandoc("""
            attempts of fetsh: expected [2], got []

            recorded calls: fetch, shop.load
        """)

    def test_tell_of_ten_calls_at_most(self):
        with record() as recorded, pytest.raises(AssertionError) as caught:
            for _ in range(12):
                succeed("fetch")
            recorded.assert_gave_up("fetch")
        assert str(caught.value).count("fetch succeeded") == 10
        assert str(caught.value).endswith("\n\n(2 more calls)")

    def test_take_the_function_that_is_called_under_a_policy(self):
        fetch = ScriptedFunction([OSError, "ok"], name="fetch")
        with virtual_time(), record() as recorded:
            Policy().call(fetch)
            Policy().call(int)
        recorded.assert_attempts(fetch, 2)
        recorded.assert_attempts(int, 1)

    def test_fail_where_nothing_was_called(self):
        fetch = retry(ScriptedFunction([], name="fetch"))
        with record() as recorded, pytest.raises(AssertionError) as caught:
            recorded.assert_succeeded(fetch)
        assert str(caught.value) == cleandoc("""
            outcomes of fetch: expected ['succeeded'], got []

            recorded calls: none
        """)

    @pytest.mark.parametrize("reason", [None, StopReason.ATTEMPTS])
    def test_fail_for_a_call_that_still_runs(self, reason):
        def fetch():
            with pytest.raises(AssertionError) as caught:
                recorded.assert_gave_up("fetch", reason)
            return str(caught.value).partition("\n")[0]

        with record() as recorded:
            expected = str(reason or "gave up")
            outcomes = f"outcomes of fetch: expected [{expected!r}], got ['running']"
            assert POLICY.call(fetch) == outcomes

    def test_know_the_delays_that_the_state_does_not_keep(self):
        with virtual_time(), record() as recorded:
            policy = Policy(schedule=[1, 2, 3, 4, 5], max_attempts=6, max_failures=2)
            policy.run(ScriptedFunction([OSError, ...], name="fetch"))
        recorded.assert_delays("fetch", [1, 2, 3, 4, 5])

    def test_tell_the_delays_of_calls_apart_that_overlap(self):
        outcomes = ScriptedFunction([OSError, OSError, "ok"])

        def outer():
            POLICY.call(ScriptedFunction([OSError, OSError, "ok"], name="inner"))
            return outcomes()

        with virtual_time(), record() as recorded:
            POLICY.replace(schedule=[7, 8], name="outer").call(outer)
        recorded.assert_delays("outer", [7, 8])
        recorded.assert_delays("fetch", *[[1, 60]] * 3)


def test_the_table_is_that_of_one_function_or_of_all():
    recorded = recorded_calls()
    of_load = recorded.table("load")
    assert of_load.startswith("shop.load succeeded after 1 attempt in 0s\n")
    assert recorded.table() == f"{recorded.table('fetch')}\n\n{of_load}"
    assert recorded.table("other") == ""


def test_a_recording_tells_how_many_calls_it_has():
    assert repr(recorded_calls()) == "<Recording, calls: 3>"
