"""Queries and assertions about recorded calls."""

import asyncio
import functools
from inspect import cleandoc

import pytest

from retrykit import Policy, StopReason, aretry, retry, with_policy
from retrykit.testing import ScriptedFunction, record, virtual_time
from tests._support.optional_trio import trio

POLICY = Policy(schedule=[1, 60], on=OSError, name="fetch")


def succeed(name):
    Policy(name=name).call(int)


class Client:
    @retry(schedule=[0])
    def fetch(self):
        return "own"

    @classmethod
    @retry
    def create(cls):
        return "class"

    @staticmethod
    @retry
    def parse():
        return "static"

    part = functools.partialmethod(fetch)


class Service:
    """A callable object without a name."""

    def __call__(self):
        return "ok"


DECORATED = {
    "method": (Client().fetch, "Client.fetch"),
    "unbound method": (functools.partial(Client.fetch, Client()), "Client.fetch"),
    "partialmethod": (Client().part, "Client.fetch"),
    "classmethod": (Client.create, "Client.create"),
    "staticmethod": (Client.parse, "Client.parse"),
    "under another decorator": (functools.cache(Client.parse), "Client.parse"),
    "callable object": (retry(Service()), "Service"),
    "partial": (retry(functools.partial(Service())), "Service"),
    "with_policy": (with_policy(Client().fetch, max_attempts=2), "Client.fetch"),
    "named by its policy": (retry(name="shop.serve")(Service()), "serve"),
}


class TestCallsOfAFunction:
    def test_are_those_of_that_function_only(self):
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

    def test_a_function_does_not_match_a_longer_name_that_ends_with_its_name(self):
        fetch = retry(ScriptedFunction(["ok"], name="fetch"))
        with record() as recorded:
            fetch()
            succeed("shop.fetch")
        assert recorded.of(fetch) == [recorded.calls[0]]
        assert recorded.of("fetch") == recorded.calls

    @pytest.mark.parametrize("name", ["shop.Client.fetch", "Client.fetch", "fetch"])
    def test_a_name_matches_if_it_is_equal_or_ends_the_name_after_a_dot(self, name):
        with record() as recorded:
            succeed("shop.Client.fetch")
            succeed("prefetch")
        assert recorded.of(name) == [recorded.calls[0]]

    @pytest.mark.parametrize("name", ["etch", "shop", "fetch.more", "Fetch"])
    def test_other_parts_of_a_name_do_not_match(self, name):
        with record() as recorded:
            succeed("shop.fetch")
        assert recorded.of(name) == []

    @pytest.mark.parametrize(("fn", "end"), DECORATED.values(), ids=DECORATED)
    def test_are_found_for_each_kind_of_callable(self, fn, end):
        with record() as recorded:
            fn()
        assert len(recorded.calls) == 1
        assert recorded.of(fn) == recorded.of(end) == recorded.calls

    def test_are_found_for_a_coroutine_function(self):
        @aretry
        async def fetch():
            return "ok"

        with record() as recorded:
            asyncio.run(fetch())
            trio.run(fetch)
        assert recorded.of(fetch) == recorded.calls
        assert len(recorded.calls) == 2


def recorded_calls():
    """Return a recording of two calls that succeed and one that gives up."""
    fetch = ScriptedFunction(
        [ConnectionError("refused"), "ok", *[OSError] * 3], name="fetch"
    )
    with virtual_time(), record() as recorded:
        POLICY.run(fetch)
        POLICY.run(fetch)
        succeed("shop.load")
    return recorded


def record_until_error(error):
    """Return a recording of a call whose last attempt raises an error."""
    script = ScriptedFunction([OSError, OSError, error], name="fetch")
    with virtual_time(), record() as recorded, pytest.raises(error):
        POLICY.call(script)
    return recorded


PASSING = {
    "attempts": lambda it: it.assert_attempts("fetch", 2, 3),
    "no calls": lambda it: it.assert_attempts("other"),
    "delays": lambda it: it.assert_delays("fetch", [1], [1, 60]),
    "no delays": lambda it: it.assert_delays("load", []),
    "delays, approximately": lambda it: it.assert_delays(
        "fetch", [1], pytest.approx([1.01, 59], rel=0.1)
    ),
    "succeeded": lambda it: it.assert_succeeded("load"),
    "gave up": lambda it: record_until_error(OSError).assert_gave_up("fetch"),
    "gave up, with its reason": lambda it: record_until_error(OSError).assert_gave_up(
        "fetch", StopReason.SCHEDULE_ENDED
    ),
    "gave up, cancelled": lambda it: record_until_error(
        KeyboardInterrupt
    ).assert_gave_up("fetch", StopReason.CANCELLED),
}

FAILING = {
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
    "got ['succeeded', 'schedule_ended']": (
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
    @pytest.mark.parametrize("check", PASSING.values(), ids=PASSING)
    def test_true_assertions_pass(self, check):
        assert check(recorded_calls()) is None

    @pytest.mark.parametrize(("message", "check"), FAILING.items(), ids=FAILING)
    def test_false_assertions_fail_with_both_values(self, message, check):
        with pytest.raises(AssertionError) as caught:
            check(recorded_calls())
        assert str(caught.value).split("\n")[:2] == [message, ""]

    def test_failures_show_the_history_of_each_matching_call(self):
        with pytest.raises(AssertionError) as caught:
            recorded_calls().assert_attempts("fetch", 2)
        assert str(caught.value) == cleandoc("""
            attempts of fetch: expected [2], got [2, 3]

            fetch succeeded after 2 attempts in 1 s
              attempt  began after  took  next after  outcome
              1        0s           0s    1s          ConnectionError: refused
              2        1s           0s                succeeded

            fetch gave up after 3 attempts in 1 min 1 s: the schedule has ended
              attempt  began after  took  next after  outcome
              1        0s           0s    1s          OSError
              2        1s           0s    1m          OSError
              3        1m1s         0s                OSError
        """)

    def test_failures_list_the_recorded_names_if_none_matches(self):
        with pytest.raises(AssertionError) as caught:
            recorded_calls().assert_attempts("fetsh", 2)
        assert str(caught.value) == cleandoc("""
            attempts of fetsh: expected [2], got []

            recorded calls: fetch, shop.load
        """)

    def test_failures_show_at_most_ten_calls(self):
        with record() as recorded, pytest.raises(AssertionError) as caught:
            for _ in range(12):
                succeed("fetch")
            recorded.assert_gave_up("fetch")
        assert str(caught.value).count("fetch succeeded") == 10
        assert str(caught.value).endswith("\n\n(2 more calls)")

    def test_accept_the_undecorated_function(self):
        fetch = ScriptedFunction([OSError, "ok"], name="fetch")
        with virtual_time(), record() as recorded:
            Policy().call(fetch)
            Policy().call(int)
        recorded.assert_attempts(fetch, 2)
        recorded.assert_attempts(int, 1)

    def test_fail_if_nothing_was_called(self):
        fetch = retry(ScriptedFunction([], name="fetch"))
        with record() as recorded, pytest.raises(AssertionError) as caught:
            recorded.assert_succeeded(fetch)
        assert str(caught.value) == cleandoc("""
            outcomes of fetch: expected ['succeeded'], got []

            recorded calls: none
        """)

    @pytest.mark.parametrize("reason", [None, StopReason.ATTEMPTS])
    def test_a_running_call_has_not_given_up(self, reason):
        def fetch():
            with pytest.raises(AssertionError) as caught:
                recorded.assert_gave_up("fetch", reason)
            return str(caught.value).partition("\n")[0]

        with record() as recorded:
            expected = str(reason or "gave up")
            outcomes = f"outcomes of fetch: expected [{expected!r}], got ['running']"
            assert POLICY.call(fetch) == outcomes

    def test_include_delays_that_the_state_does_not_store(self):
        with virtual_time(), record() as recorded:
            policy = Policy(schedule=[1, 2, 3, 4, 5], max_attempts=6, max_failures=2)
            policy.run(ScriptedFunction([OSError, ...], name="fetch"))
        recorded.assert_delays("fetch", [1, 2, 3, 4, 5])

    def test_separate_the_delays_of_overlapping_calls(self):
        outcomes = ScriptedFunction([OSError, OSError, "ok"])

        def outer():
            POLICY.call(ScriptedFunction([OSError, OSError, "ok"], name="inner"))
            return outcomes()

        with virtual_time(), record() as recorded:
            POLICY.replace(schedule=[7, 8], name="outer").call(outer)
        recorded.assert_delays("outer", [7, 8])
        recorded.assert_delays("fetch", *[[1, 60]] * 3)


def test_the_table_shows_the_calls_of_one_function_or_all():
    recorded = recorded_calls()
    of_load = recorded.table("load")
    assert of_load.startswith("shop.load succeeded after 1 attempt in 0 s\n")
    assert recorded.table() == f"{recorded.table('fetch')}\n\n{of_load}"
    assert recorded.table("other") == ""


def test_the_repr_of_a_recording_shows_the_number_of_calls():
    assert repr(recorded_calls()) == "<Recording, calls: 3>"
