"""The first success counts, and what is sent when: threads, asyncio, trio."""

import asyncio
import threading
import traceback
from contextvars import ContextVar
from functools import partial

import pytest

from retrykit import (
    AsArgument,
    AttemptTimeout,
    ConfigError,
    GiveUp,
    Hedge,
    NestedRetryError,
    RetryAfter,
    StopReason,
    aretry,
    current_state,
    observe,
    retry,
    state_of,
)
from retrykit.budgets import Budget, RatioBudget, Throttle
from retrykit.events import HedgeStarted
from retrykit.limits import Lease, Limit
from retrykit.testing import disable_retries, limit_retries
from tests._support.hedged_sends import FORMS, Form
from tests._support.optional_trio import trio


def hedge(delay=2, at_most=3, extra=9, **settings):
    return Hedge(delay, at_most=at_most, extra=extra, idempotent=True, **settings)


@pytest.fixture(params=FORMS)
def form(request, clock):
    return Form(request.param, clock)


ONCE = {"max_attempts": 1}


def test_a_quick_send_is_not_hedged(form):
    assert form.call(hedge(), (1, "first")) == "first"
    assert form.sent == [0]
    assert form.clock.now() == 1


def test_the_first_success_counts_and_the_others_are_cancelled(form):
    assert form.call(hedge(), (10, "first"), (5, "second"), (1, "third")) == "third"
    assert form.sent == [0, 2, 4]
    assert form.clock.now() == 5
    assert sorted(form.cancelled) == ([1, 2] if form.in_tasks else [])


def test_the_first_send_may_still_win(form):
    assert form.call(hedge(), (3, "first"), (5, "second")) == "first"
    assert (form.sent, form.clock.now()) == ([0, 2], 3)


def test_a_success_wins_a_tie_with_an_error(form):
    fatal = (3, KeyError("fatal"))
    assert form.call(hedge(at_most=2), fatal, (1, "second"), **ONCE) == "second"


def test_of_two_failures_at_once_both_count(form):
    script = (3, OSError("one")), (1, OSError("two"))
    with pytest.raises(OSError, match="one") as caught:
        form.call(hedge(at_most=2), *script, **ONCE)
    assert "OSError: two" in caught.value.__notes__[0]
    assert form.clock.now() == 3


def test_the_next_send_goes_out_at_once_after_a_retryable_failure(form):
    script = (1, OSError("one")), (0.5, OSError("two")), (1, "third")
    assert form.call(hedge(), *script, **ONCE) == "third"
    assert (form.sent, form.clock.now()) == ([0, 1, 1.5], 2.5)


def test_after_a_failure_the_delay_begins_anew(form):
    script = (1, OSError("one")), (9, "second"), (1, "third")
    assert form.call(hedge(), *script, **ONCE) == "third"
    assert form.sent == [0, 1, 3]


def test_an_error_that_is_not_retried_ends_the_attempt(form):
    with pytest.raises(KeyError, match="fatal") as caught:
        form.call(hedge(), (9, "first"), (1, KeyError("fatal")), on=OSError)
    assert (form.sent, form.clock.now()) == ([0, 2], 3)
    assert state_of(caught.value).attempt == 1
    assert form.cancelled == ([1] if form.in_tasks else [])


def test_if_all_fail_the_attempt_fails_as_its_first_send_with_notes_of_the_others(form):
    script = (4, OSError("one")), (1, OSError("two")), (9, OSError("three"))
    with pytest.raises(OSError, match="one") as caught:
        form.call(hedge(), *script, **ONCE)
    assert caught.value.__notes__[0] == (
        "retrykit: send 2 of this attempt failed with OSError: two; "
        "send 3 of this attempt failed with OSError: three"
    )
    assert form.clock.now() == 12
    assert form.cancelled == []


def test_an_error_without_text_is_noted_by_its_type(form):
    with pytest.raises(OSError, match="one") as caught:
        form.call(hedge(at_most=2), (1, OSError("one")), (1, OSError()), **ONCE)
    assert caught.value.__notes__[0] == (
        "retrykit: send 2 of this attempt failed with OSError"
    )


def test_the_retry_goes_on_after_all_sends_have_failed(form):
    failed = (1, OSError("no")), (1, OSError("no"))
    result = form.call(hedge(at_most=2), *failed, (1, "third"), schedule=[10])
    assert (result, form.sent, form.clock.now()) == ("third", [0, 1, 12], 13)


def test_a_send_that_begins_when_another_one_ends_is_not_lost(form):
    script = (2, OSError("one")), (5, "second"), (1, OSError("three"))
    assert form.call(hedge(), *script, **ONCE) == "second"


def test_a_rejected_result_is_a_failure(form):
    script = (1, None), (1, None), (1, "third")
    result = form.call(
        hedge(), *script, on_result=lambda result: result is None, **ONCE
    )
    assert (result, form.sent) == ("third", [0, 1, 2])


def test_a_rejected_result_of_the_first_send_is_what_the_attempt_returns(form):
    script = (1, "bad"), (1, OSError("two"))
    settings = {"on_result": "bad".__eq__, "schedule": [5], "max_attempts": 2}
    result = form.call(hedge(at_most=2), *script, (1, "good"), **settings)
    assert (result, form.sent) == ("good", [0, 1, 7])


def test_with_no_delay_all_are_sent_at_once(form):
    script = (9, "first"), (9, "second"), (9, "third")
    assert form.call(hedge(0), *script) in {"first", "second", "third"}
    assert (form.sent, form.clock.now()) == ([0, 0, 0], 9)


def test_an_error_object_that_is_shared_has_no_note_about_itself(form):
    shared = OSError("shared")
    with pytest.raises(OSError, match="shared"):
        form.call(hedge(at_most=2), (1, shared), (1, shared), **ONCE)
    assert not [note for note in shared.__notes__ if "send" in note]


class TestHints:
    def test_a_send_waits_as_long_as_a_failure_asks_and_the_next_one_for_the_delay(
        self, form
    ):
        """GRPC A6: pushback of n ms is n ms, and then the hedging delay again."""
        script = (1, RetryAfter(5)), (9, "second"), (1, "third")
        assert form.call(hedge(), *script, **ONCE) == "third"
        assert form.sent == [0, 6, 8]

    def test_a_hedge_alone_waits_as_well(self, form):
        fn = form.function((1, RetryAfter(5)), (1, "second"))
        assert form.blocking(hedge()(fn))() == "second"
        assert form.sent == [0, 6]

    def test_meanwhile_the_others_may_succeed(self, form):
        script = (5, "first"), (1, RetryAfter(60)), (1, "never")
        assert form.call(hedge(), *script, **ONCE) == "first"
        assert (form.sent, form.clock.now()) == ([0, 2], 5)

    def test_a_hint_of_the_policy_counts_as_well(self, form):
        script = (1, OSError("one")), (1, "second")
        form.call(hedge(), *script, hint=lambda _: 7, hint_jitter=0, **ONCE)
        assert form.sent == [0, 8]

    def test_it_is_spread_as_before_a_retry(self, form):
        script = (1, OSError("one")), (1, "second")
        form.call(hedge(), *script, hint=lambda _: 10, hint_jitter=0.5, **ONCE)
        assert 11 < form.sent[1] < 16

    @pytest.mark.parametrize(
        "limit",
        [{"hint_cap": 6}, {"max_elapsed": 7}],
        ids=["hint_cap", "max_elapsed"],
    )
    def test_after_one_that_is_too_long_for_a_retry_nothing_is_sent(self, form, limit):
        script = (1, OSError("busy")), (1, "never")
        with pytest.raises(OSError, match="busy") as caught:
            form.call(hedge(), *script, hint=lambda _: 7, **limit)
        assert (form.sent, form.clock.now()) == ([0], 1)
        assert state_of(caught.value).stop_reason is StopReason.HINT

    def test_one_that_is_too_long_is_cut_or_ignored_as_before_a_retry(self, form):
        rules = {"hint": lambda _: 7, "hint_cap": 6, "hint_jitter": 0, **ONCE}
        script = (1, OSError("one")), (1, "second")
        assert form.call(hedge(), *script, on_long_hint="clip", **rules) == "second"
        assert form.sent == [0, 7]
        form.sent.clear()
        begun = form.clock.now()
        form.call(hedge(), *script, on_long_hint="ignore", **rules)
        assert form.sent == [begun, begun + 1]

    def test_without_a_time_limit_of_its_own_a_call_waits(self, form):
        script = (1, OSError("one")), (1, "second")
        both = {"max_attempts": 2, "max_elapsed": 3, "limits": "all", "schedule": [1]}
        hinted = {"hint": lambda _: 7, "hint_jitter": 0}
        assert form.call(hedge(), *script, **both, **hinted) == "second"
        assert form.sent == [0, 8]

    def test_after_no_nothing_is_sent_and_those_in_flight_go_on(self, form):
        def hint(error):
            return GiveUp() if str(error) == "no" else None

        script = (9, "first"), (1, OSError("no")), (1, "never")
        assert form.call(hedge(), *script, hint=hint) == "first"
        assert (form.sent, form.clock.now()) == ([0, 2], 9)

    def test_after_no_there_is_no_retry_either(self, form):
        def hint(error):
            return GiveUp() if str(error) == "no" else None

        script = (9, OSError("one")), (1, OSError("no")), (1, "never")
        with pytest.raises(OSError, match="no") as caught:
            form.call(hedge(), *script, hint=hint, schedule=[1, 1])
        assert state_of(caught.value).stop_reason is StopReason.GAVE_UP
        assert form.sent == [0, 2]

    def test_give_up_that_is_raised_ends_the_attempt(self, form):
        with pytest.raises(OSError, match="no"):
            form.call(hedge(), (9, "first"), (1, GiveUp(OSError("no"))))
        assert form.clock.now() == 3


class TestBudgets:
    def test_the_budget_of_the_policy_pays_for_each_hedge(self, form):
        budget = RatioBudget(0, reserve=0.1)
        script = (9, "first"), (9, "second"), (1, "never")
        assert form.call(hedge(), *script, budget=budget) == "first"
        assert form.sent == [0, 2]

    def test_a_throttle_below_half_allows_no_hedge(self, form):
        throttle = Throttle(max_tokens=2)
        throttle.failed(first=True, retryable=True)
        assert form.call(hedge(), (9, "first"), budget=throttle) == "first"
        assert form.sent == [0]

    def test_a_failed_send_takes_a_token_of_a_throttle_even_if_another_one_wins(
        self, form
    ):
        """GRPC A6: each failed attempt counts, hedges included."""
        throttle = Throttle(max_tokens=10, token_ratio=0.5)
        script = (1, OSError("one")), (1, OSError("two")), (1, "third")
        assert form.call(hedge(), *script, budget=throttle) == "third"
        assert throttle.balance == 8.5

    def test_a_failed_attempt_takes_as_many_tokens_as_it_had_failed_sends(self, form):
        throttle = Throttle(max_tokens=10)
        script = (1, OSError("one")), (1, OSError("two"))
        with pytest.raises(OSError, match="one"):
            form.call(hedge(at_most=2), *script, budget=throttle, **ONCE)
        assert throttle.balance == 8

    def test_a_budget_that_fails_on_failed_sends_is_logged(self, form, caplog):
        class Broken(Budget):
            balance = 0.0

            def withdraw(self, error):
                return 0.0

            def deposit(self, cost):
                pass

            def failed(self, *, first, retryable):
                raise LookupError

        script = (1, OSError("one")), (1, "second")
        assert form.call(hedge(), *script, budget=Broken()) == "second"
        assert "the budget failed on a failed send" in caplog.text

    def test_a_refusal_leaves_the_extra_load_as_it_was(self, form):
        one = hedge(extra=0.1, at_most=2)
        empty = RatioBudget(0, reserve=0)
        assert form.call(one, (9, "first"), budget=empty) == "first"
        form.sent.clear()
        assert form.call(one, (9, "first"), (1, "second")) == "second"

    def test_beyond_the_extra_load_nothing_is_sent_and_nothing_fails(self, form):
        one = hedge(extra=0.1, at_most=2)
        assert form.call(one, (4, "first"), (1, "second")) == "second"
        form.sent.clear()
        assert form.call(one, (4, "first"), (1, "second")) == "first"
        assert len(form.sent) == 1

    def test_a_failure_beyond_the_extra_load_is_that_of_the_attempt(self, form):
        one = hedge(extra=0.1, at_most=2)
        form.call(one, (4, "first"), (1, "second"))
        form.sent.clear()
        with pytest.raises(OSError, match="alone"):
            form.call(one, (1, OSError("alone")), **ONCE)

    def test_a_budget_that_fails_is_logged_and_pays_for_nothing(self, form, caplog):
        class Broken(Budget):
            balance = 0.0

            def withdraw(self, error):
                raise LookupError

            def deposit(self, cost):
                pass

        assert form.call(hedge(), (9, "first"), budget=Broken()) == "first"
        assert "not hedged, because the budget failed" in caplog.text


@pytest.mark.parametrize("form", FORMS[1:], indirect=True)
class TestAsyncConditions:
    def test_a_budget_and_conditions_may_be_awaited(self, form):
        class Awaited(Budget):
            balance = 0.0

            async def withdraw(self, error):
                return 0.0

            async def deposit(self, cost):
                pass

        async def is_bad(result):
            return result == "bad"

        async def is_os_error(error):
            return isinstance(error, OSError)

        script = (1, "bad"), (1, OSError("no")), (1, "third")
        settings = {"on": is_os_error, "on_result": is_bad, "budget": Awaited()}
        assert form.call(hedge(), *script, **settings) == "third"

    def test_a_condition_that_fails_raises_its_error_alone(self, form):
        def is_bad(result):
            raise LookupError("condition")

        with pytest.raises(LookupError, match="condition"):
            form.call(hedge(), (3, "first"), (9, "second"), on_result=is_bad)
        assert form.cancelled == [2]

    def test_each_send_has_the_attempt_timeout(self, form):
        script = (9, "first"), (9, "second"), (1, "third")
        result = form.call(hedge(), *script, attempt_timeout=3, **ONCE)
        assert (result, form.sent) == ("third", [0, 2, 3])

    def test_if_all_take_too_long_the_attempt_has(self, form):
        script = (9, "first"), (9, "second")
        with pytest.raises(AttemptTimeout, match="longer than 3 s"):
            form.call(hedge(at_most=2), *script, attempt_timeout=3, **ONCE)
        assert form.clock.now() == 5

    def test_an_awaitable_that_is_no_coroutine_is_awaited(self, form):
        class Awaitable:
            def __init__(self, send):
                self._send = send

            def __await__(self):
                return self._send().__await__()

        send = form.function((9, "first"), (1, "second"))
        assert form.decorate(hedge(), partial(Awaitable, send))() == "second"


def test_the_timeout_is_an_argument_of_each_send(form):
    timeouts = []
    send = form.function((9, "first"), (1, "second"))

    def fetch(timeout):
        timeouts.append(timeout)
        return send()

    assert form.decorate(hedge(), fetch, attempt_timeout=AsArgument(5))() == "second"
    assert timeouts == [5, 5]


def test_a_group_is_matched_by_its_members(form):
    retryable = ExceptionGroup("", [OSError("one")])
    script = (1, retryable), (1, ExceptionGroup("", [KeyError("two")]))
    with pytest.raises(ExceptionGroup) as caught:
        form.call(hedge(), *script, on=OSError)
    assert caught.group_contains(KeyError)
    assert form.sent == [0, 1]


class Abort(BaseException):
    """An error that is no Exception."""


def test_a_base_exception_of_a_send_ends_the_call(form):
    with pytest.raises(Abort):
        form.call(hedge(), (9, "first"), (1, Abort()))
    assert form.clock.now() == 3


def test_a_base_exception_has_no_note_of_other_failures(form):
    with pytest.raises(Abort) as caught:
        form.call(hedge(), (1, OSError("one")), (1, Abort()))
    assert not any("send" in note for note in getattr(caught.value, "__notes__", []))


class TestState:
    def test_hedges_are_counted_and_observed(self, form):
        events = []
        with observe(events.append):
            script = (9, "one"), (9, "two"), (1, "three")
            form.call(hedge(), *script)
        numbers = [e.number for e in events if isinstance(e, HedgeStarted)]
        assert numbers == [2, 3]
        assert events[-1].state.hedges == 2

    def test_a_send_knows_the_state_of_its_call(self, form):
        def state():
            return current_state().attempt, current_state().hedges

        failed = (1, OSError("one")), (1, OSError("two"))
        call = hedge(at_most=2), *failed, (9, "slow"), (1, state)
        assert form.call(*call, schedule=[1]) == (2, 2)

    def test_the_context_is_that_of_the_caller(self, form):
        variable = ContextVar("variable")
        variable.set("outer")
        assert form.call(hedge(), (9, "slow"), (1, variable.get)) == "outer"

    def test_a_send_does_not_change_the_context_of_its_caller(self, form):
        variable = ContextVar("variable", default="outer")
        form.call(hedge(), (1, partial(variable.set, "inner")))
        assert variable.get() == "outer"


class TestTracebacks:
    def test_a_traceback_has_no_frame_between_driver_and_function(self, form):
        with pytest.raises(OSError, match="one") as caught:
            form.call(
                hedge(at_most=2), (1, OSError("one")), (1, OSError("two")), **ONCE
            )
        frames = traceback.extract_tb(caught.value.__traceback__)
        names = [frame.name for frame in frames]
        assert names[-2:] == ["asend" if form.in_tasks else "send", "end"]
        assert not [
            f
            for f in frames
            if "hedg" in f.filename
            and "retrykit" in f.filename
            and "tests" not in f.filename
        ]
        assert not [f for f in frames if f.filename.endswith("task_sends.py")]


class TestNestedCalls:
    def nested(self, form, *outcomes):
        """Return a function that retries in itself, at once."""
        remaining = [*outcomes]
        lock = threading.Lock()

        def inner():
            with lock:
                outcome = remaining.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        async def ainner():
            return inner()

        if form.in_tasks:
            return aretry(schedule=[1])(ainner)
        return retry(schedule=[1])(inner)

    def test_a_nested_call_retries_in_its_send(self, form):
        fn = self.nested(form, OSError("one"), "done")
        assert form.decorate(hedge(at_most=2), fn)() == "done"

    def test_a_nested_call_that_has_given_up_is_not_sent_again(self, form):
        failures = [OSError(f"failure {i}") for i in range(8)]
        fn = self.nested(form, *failures)
        with pytest.raises(OSError, match="failure") as caught:
            form.decorate(hedge("1h", at_most=3), fn, schedule=[1] * 3)()
        state = state_of(caught.value)
        assert (state.stop_reason, state.hedges) == (StopReason.NESTED, 0)

    def test_unless_the_policy_retries_it(self, form):
        failures = [OSError(f"failure {i}") for i in range(2)]
        fn = self.nested(form, *failures, "done")
        assert form.decorate(hedge("1h", at_most=3), fn, nested="retry")() == "done"

    def test_its_error_may_be_replaced(self, form):
        fn = self.nested(form, *[OSError("no") for _ in range(8)])
        with pytest.raises(NestedRetryError):
            form.decorate(hedge("1h"), fn, nested="raise")()


class Noted(Lease):
    """A lease that notes what is reported."""

    generation, delay = 0, 0.0

    def __init__(self, noted):
        self._noted = noted

    def succeeded(self):
        self._noted.append("success")

    def failed(self, error=None):
        self._noted.append("failure")

    def ignored(self):
        self._noted.append("ignored")


class NotedLimit(Limit):
    name = state = "noted"

    def __init__(self):
        self.noted = []

    def acquire(self):
        self.noted.append("acquired")
        return Noted(self.noted)


class TestLimits:
    def test_all_sends_of_an_attempt_have_one_lease(self, form):
        limit = NotedLimit()
        script = (9, "one"), (9, "two"), (1, "three")
        assert form.call(hedge(), *script, admission=[limit]) == "three"
        assert limit.noted == ["acquired", "success"]

    def test_losers_that_fail_change_nothing(self, form):
        limit = NotedLimit()
        script = (1, OSError("one")), (1, "two")
        assert form.call(hedge(), *script, admission=[limit]) == "two"
        assert limit.noted == ["acquired", "success"]

    def test_if_all_fail_the_attempt_fails_once(self, form):
        limit = NotedLimit()
        script = (1, OSError("one")), (1, OSError("two"))
        with pytest.raises(OSError, match="one"):
            form.call(hedge(at_most=2), *script, admission=[limit], **ONCE)
        assert limit.noted == ["acquired", "failure"]


class TestAlone:
    def alone(self, form, one, *script):
        return form.blocking(one(form.function(*script)))

    def test_each_call_of_a_decorated_function_is_hedged(self, form):
        call = self.alone(form, hedge(), (9, "one"), (1, "two"))
        assert call() == "two"
        assert form.sent == [0, 2]

    def test_its_error_is_that_of_the_function(self, form):
        failures = (1, OSError("one")), (1, OSError("two"))
        call = self.alone(form, hedge(at_most=2), *failures)
        with pytest.raises(OSError, match="one") as caught:
            call()
        assert caught.value.__notes__ == [
            "retrykit: send 2 of this attempt failed with OSError: two"
        ]

    def test_a_call_around_it_does_not_count_its_hedges(self, form):
        inner = hedge()(form.function((9, "one"), (1, "two")))
        events = []
        with observe(events.append):
            assert form.decorate(hedge(4), inner)() == "two"
        assert not [e for e in events if isinstance(e, HedgeStarted)]
        assert events[-1].state.hedges == 0

    def test_it_keeps_the_name_of_the_function(self, form):
        fn = form.function()
        assert hedge()(fn).__name__ == fn.__name__

    def test_a_method_is_hedged(self, form):
        class Client:
            fetch = hedge()(lambda self, name: f"{self.prefix} {name}")
            prefix = "hello"

        if form.in_tasks:
            pytest.skip("the same in threads")
        assert Client().fetch("you") == "hello you"


def test_a_function_that_returns_a_coroutine_is_rejected_when_it_is_hedged_alone():
    async def fetch():
        """Never awaited."""

    def wrapped():
        return fetch()

    with pytest.raises(ConfigError, match="make it a coroutine function"):
        hedge()(wrapped)()


def test_a_generator_function_is_rejected():
    def pages():
        yield 1

    with pytest.raises(ConfigError, match="not a generator function"):
        hedge()(pages)


class TestQuantile:
    def quantile(self, share=0.9):
        return hedge(None, at_most=2, quantile=share)

    def test_nothing_is_hedged_before_there_are_20_samples(self, form):
        one = self.quantile()
        for _ in range(19):
            form.sent.clear()
            form.call(one, (5, "first"))
        assert one.current_delay is None
        form.sent.clear()
        form.call(one, (5, "first"))
        assert one.current_delay == pytest.approx(5)
        form.sent.clear()
        assert form.call(one, (9, "first"), (1, "second")) == "second"
        assert form.sent[1] - form.sent[0] == pytest.approx(5)

    def test_a_result_that_is_rejected_is_no_answer(self, form):
        """A server that is overloaded may refuse at once."""
        one = self.quantile()
        for _ in range(20):
            form.sent.clear()
            script = (0, "busy"), (5, "first")
            form.call(one, *script, on_result="busy".__eq__, schedule=[0])
        assert one.current_delay == pytest.approx(5)

    def test_the_delay_is_at_least_a_millisecond(self, form):
        one = self.quantile()
        for _ in range(20):
            form.sent.clear()
            form.call(one, (0, "first"))
        assert one.current_delay == 0.001

    def test_the_delay_follows_the_last_thousand_attempts(self, clock):
        one = self.quantile(0.5)
        for seconds in [1.0] * 1000 + [3.0] * 1000:
            one.note(seconds)
        assert one.current_delay == 3


class TestBlocksOfTests:
    def test_without_retries_nothing_is_hedged(self, form):
        call = form.decorate(hedge(0), form.function((0, "first")))
        with disable_retries():
            assert call() == "first"
        assert len(form.sent) == 1

    def test_a_hint_is_not_waited_for_where_delays_are_skipped(self, form):
        call = form.decorate(
            hedge("1h"), form.function((0, RetryAfter("1h")), (0, "second")), **ONCE
        )
        with limit_retries():
            assert call() == "second"


def test_nothing_is_sent_once_the_policy_is_stopped(clock):
    form, stop = Form("threads", clock), threading.Event()

    def fail():
        stop.set()
        raise OSError("one")

    with pytest.raises(OSError, match="one"):
        form.call(hedge(), (1, fail), (1, "never"), stop_event=stop)
    assert form.sent == [0]


@pytest.mark.parametrize("name", ["asyncio", "trio"])
def test_nothing_is_sent_once_the_event_of_a_loop_is_set(name, clock):
    form, library = Form(name, clock), {"asyncio": asyncio, "trio": trio}[name]

    async def main():
        stop = library.Event()

        def fail():
            stop.set()
            raise OSError("one")

        send = form.function((1, fail), (1, "never"))
        with pytest.raises(OSError, match="one"):
            await aretry(hedge=hedge(), stop_event=stop)(send)()

    form.blocking(main)()
    assert form.sent == [0]


@pytest.mark.needs("threads")
def test_an_event_ends_the_wait_that_a_hint_asks_for_by_real_time():
    stop, sent = threading.Event(), []

    @retry(hedge=hedge(), stop_event=stop, **ONCE)
    def fail():
        sent.append(None)
        threading.Timer(0.01, stop.set).start()
        raise RetryAfter("1h")

    with pytest.raises(RetryAfter):
        fail()
    assert len(sent) == 1


@pytest.mark.parametrize("name", ["asyncio", "trio"])
def test_an_event_of_a_loop_ends_the_wait_that_a_hint_asks_for(name):
    library, sent = {"asyncio": asyncio, "trio": trio}[name], []

    async def main():
        stop = library.Event()

        @aretry(hedge=hedge(), stop_event=stop, hint=lambda _: 60, **ONCE)
        async def fail():
            sent.append(None)
            stop.set()
            raise OSError("one")

        with pytest.raises(OSError, match="one"):
            await fail()

    if name == "trio":
        trio.run(main)
    else:
        asyncio.run(main())
    assert len(sent) == 1
