"""The history of a call as a table: one line for each attempt."""

from inspect import cleandoc

import pytest
from hypothesis import given, strategies as st

from retrykit import (
    Failure,
    GiveUp,
    Policy,
    RetryState,
    StopReason,
    current_state,
    resume,
    state_of,
)
from retrykit._internal.clocks import sync_clock
from retrykit.events import RetryScheduled
from retrykit.testing import ScriptedFunction
from retrykit.testing._history_table import history

POLICY = Policy(schedule=[1, 60], on=OSError, name="fetch")


def failure(number, error=None, *, result=None, delay=1.0):
    return Failure(number, error, result, number - 1.0, 0.0, delay)


def outcome_column(error, result=None):
    """Return the outcome column of a table with one failure."""
    failures = (failure(1, error, result=result),)
    state = RetryState("fetch", seed=7, epoch=0.0, failures=failures)
    _, head, *rows = history(state).split("\n")
    assert len(rows) == 1
    return rows[0][head.index("outcome") :]


class TestStatus:
    def test_of_a_call_that_succeeds_at_once(self, backend, clock):
        outcome = backend.run(POLICY, ScriptedFunction(["ok"]))
        assert history(outcome.state) == cleandoc("""
            fetch succeeded after 1 attempt in 0 s
              attempt  began after  took  next after  outcome
              1        0s           0s                succeeded
        """)

    def test_of_a_call_that_succeeds_in_the_end(self, backend, clock):
        script = ScriptedFunction([ConnectionError("refused"), TimeoutError, "ok"])

        def slow():
            clock.advance(0.25)
            return script()

        assert history(backend.run(POLICY, slow).state) == cleandoc("""
            fetch succeeded after 3 attempts in 1 min 2 s
              attempt  began after  took   next after  outcome
              1        0s           250ms  1s          ConnectionError: refused
              2        1.25s        250ms  1m          TimeoutError
              3        1m2s         250ms              succeeded
        """)

    def test_of_a_call_in_its_first_attempt(self, backend, clock):
        def slow():
            clock.advance(5)
            return history(current_state())

        assert backend.run(POLICY, slow).value == cleandoc("""
            fetch is running: 1 attempt in 5 s
              attempt  began after  took  next after  outcome
              1        0s           5s                running
        """)

    def test_of_a_call_in_a_later_attempt(self, backend, clock):
        script = ScriptedFunction([OSError("refused"), "ok"])

        def fetch():
            return script() and history(current_state())

        assert backend.run(POLICY, fetch).value == cleandoc("""
            fetch is running: 2 attempts in 1 s
              attempt  began after  took  next after  outcome
              1        0s           0s    1s          OSError: refused
              2        1s           0s                running
        """)

    def test_of_a_call_that_waits_for_its_next_attempt(self, backend, clock):
        waiting = []

        def record_history(event):
            if isinstance(event, RetryScheduled):
                waiting.append(history(event.state))

        script = ScriptedFunction([OSError("refused"), "ok"])
        backend.run(POLICY.replace(observers=[record_history]), script)
        assert waiting == [
            cleandoc("""
            fetch is running: 1 attempt in 0 s
              attempt  began after  took  next after  outcome
              1        0s           0s    1s          OSError: refused
        """)
        ]

    @pytest.mark.parametrize(
        ("policy", "outcomes", "head", "last"),
        [
            (
                POLICY.replace(max_attempts=2),
                [OSError("refused"), ...],
                "2 attempts in 1 s: max_attempts=2 reached",
                "2        1s           0s                OSError: refused",
            ),
            (
                POLICY.replace(max_elapsed=9),
                [OSError("refused"), ...],
                "2 attempts in 1 s: max_elapsed=9s would be exceeded",
                "2        1s           0s                OSError: refused",
            ),
            (
                POLICY,
                [OSError("refused"), ...],
                "3 attempts in 1 min 1 s: the schedule has ended",
                "3        1m1s         0s                OSError: refused",
            ),
            (
                POLICY,
                [OSError, GiveUp(OSError("gone"))],
                "2 attempts in 1 s: GiveUp was raised",
                "2        1s           0s                OSError: gone",
            ),
            (
                POLICY,
                [OSError, KeyError("id")],
                "2 attempts in 1 s: the error is not retryable",
                "2        1s           0s                KeyError: 'id'",
            ),
        ],
        ids=["attempts", "elapsed", "schedule ended", "gave up", "not retryable"],
    )
    def test_of_a_call_that_gave_up(self, clock, policy, outcomes, head, last):
        with pytest.raises((OSError, KeyError)) as caught:
            policy.call(ScriptedFunction(outcomes))
        lines = history(state_of(caught.value)).split("\n")
        assert lines[0] == f"fetch gave up after {head}"
        assert lines[-1] == f"  {last}"

    def test_of_a_call_that_ends_without_a_failure(self, clock):
        def broken(_result):
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError) as caught:
            POLICY.replace(on_result=broken).call(ScriptedFunction(["ok"]))
        assert history(state_of(caught.value)) == cleandoc("""
            fetch gave up after 1 attempt in 0 s: the error is not retryable
              attempt  began after  took  next after  outcome
              1        0s           0s                dead
        """)

    def test_of_a_call_that_is_cancelled_in_an_attempt(self, backend, clock):
        script = ScriptedFunction([OSError, KeyboardInterrupt])
        with pytest.raises(KeyboardInterrupt) as caught:
            backend(POLICY)(script)()
        assert history(state_of(caught.value)) == cleandoc("""
            fetch was cancelled after 2 attempts in 1 s
              attempt  began after  took  next after  outcome
              1        0s           0s    1s          OSError
              2        1s           0s                cancelled
        """)

    def test_of_a_call_that_is_cancelled_while_it_waits(self):
        class InterruptedClock:
            now = staticmethod(lambda: 0.0)

            def sleep(self, _delay, /):
                raise KeyboardInterrupt

        with (
            sync_clock.use(InterruptedClock()),
            pytest.raises(KeyboardInterrupt) as caught,
        ):
            POLICY.call(ScriptedFunction([OSError]))
        assert history(state_of(caught.value)) == cleandoc("""
            fetch was cancelled after 1 attempt in 0 s
              attempt  began after  took  next after  outcome
              1        0s           0s    1s          OSError
        """)


class TestOutcome:
    def test_shows_a_rejected_result(self, backend, clock):
        policy = POLICY.replace(on_result=lambda result: result != "ok")
        outcome = backend.run(policy, ScriptedFunction([503, None, "ok"]))
        assert history(outcome.state) == cleandoc("""
            fetch succeeded after 3 attempts in 1 min 1 s
              attempt  began after  took  next after  outcome
              1        0s           0s    1s          the result 503
              2        1s           0s    1m          the result None
              3        1m1s         0s                succeeded
        """)

    def test_shows_an_error_without_a_message_by_its_type(self):
        assert outcome_column(OSError()) == "OSError"

    def test_shows_an_error_of_several_lines_in_one_line(self):
        assert outcome_column(OSError("no\r\n  route \u2028 to\x0b\thost\n")) == (
            "OSError: no route to host"
        )

    def test_truncates_a_long_message(self):
        assert outcome_column(OSError("x" * 91)) == f"OSError: {'x' * 91}"
        assert outcome_column(OSError("x" * 92)) == f"OSError: {'x' * 88}..."
        assert outcome_column(None, "y" * 300) == f"the result '{'y' * 85}..."

    def test_shows_an_error_whose_str_fails(self):
        class UnprintableError(Exception):
            __qualname__ = "MuteError"
            __module__ = "builtins"

            def __str__(self):
                raise ValueError

            __repr__ = __str__

        assert (
            outcome_column(UnprintableError())
            == "MuteError: <ValueError while formatting>"
        )
        assert (
            outcome_column(None, UnprintableError())
            == "the result <ValueError while formatting>"
        )

    @given(
        st.lists(st.tuples(st.text(), st.floats(0, 1e9), st.floats(0, 1e9)), min_size=1)
    )
    def test_columns_are_aligned_and_each_attempt_has_one_line(self, attempts):
        """Whatever the messages and the durations are."""
        failures = tuple(
            Failure(number, OSError(text), None, began, began, delay)
            for number, (text, began, delay) in enumerate(attempts[:20], 1)
        )
        state = RetryState("fetch", 7, 0.0, attempt=len(failures), failures=failures)
        _, head, *rows = history(state).splitlines()
        assert len(rows) == len(failures)
        starts = [head.index(name) for name in ("began", "took", "next", "outcome")]
        for row in rows:
            assert all(row[at - 2 : at] == "  " != row[at : at + 2] for at in starts)


class TestManyAttempts:
    def numbers(self, state):
        return [line.split()[0] for line in history(state).split("\n")[2:]]

    def fail_times(self, failures, **changes):
        policy = Policy(schedule=[1] * 200, max_attempts=None)
        return policy.replace(**changes).run(
            ScriptedFunction([*[OSError] * failures, "ok"])
        )

    def test_are_all_shown_up_to_twenty_failures(self, clock):
        shown = self.numbers(self.fail_times(20).state)
        assert shown == [str(number) for number in range(1, 22)]

    def test_are_the_first_and_the_last_ones_beyond(self, clock):
        shown = self.numbers(self.fail_times(50).state)
        first, last = range(1, 11), range(41, 52)
        assert shown == [*map(str, first), "...", *map(str, last)]

    def test_have_a_gap_even_for_a_single_attempt(self, clock):
        shown = self.numbers(self.fail_times(21).state)
        assert shown == [*map(str, range(1, 11)), "...", *map(str, range(12, 23))]

    def test_have_a_gap_before_the_first_known_one(self):
        failures = (failure(3), failure(4))
        state = RetryState("fetch", seed=7, epoch=0.0, attempt=4, failures=failures)
        assert self.numbers(state) == ["...", "3", "4"]

    def test_have_a_gap_where_failures_were_dropped(self, clock):
        state = self.fail_times(9, max_failures=5).state
        assert self.numbers(state) == ["1", "2", "...", "7", "8", "9", "10"]

    def test_have_one_gap_for_dropped_and_hidden_failures(self, clock):
        state = self.fail_times(90, max_failures=40).state
        first, last = range(1, 11), range(81, 92)
        assert self.numbers(state) == [*map(str, first), "...", *map(str, last)]

    def test_have_their_gap_after_a_resume_with_more_max_failures(self, clock):
        state = self.fail_times(9, max_failures=4).state
        state._record.stop_reason = None
        events = []
        policy = Policy(schedule=[1] * 20, max_attempts=None, observers=[events.append])
        resume(ScriptedFunction(["ok"]), state, policy)()
        assert events[-1].state.max_failures == 100
        assert self.numbers(events[-1].state) == ["1", "2", "...", "8", "9", "10"]


class TestData:
    @pytest.mark.parametrize("reason", [None, *StopReason])
    def test_of_another_process_have_the_same_table(self, reason):
        failures = (failure(1, OSError("refused")), failure(2, result=503, delay=60.0))
        state = RetryState(
            "fetch",
            seed=7,
            epoch=0.0,
            attempt=3,
            attempt_started=61.0,
            failures=failures,
            stop_reason=reason,
            elapsed_at_end=61.5,
        )
        again = RetryState.from_dict(state.to_dict())
        assert history(again) == history(state)
        ends = {None: "running", StopReason.SUCCEEDED: "succeeded"}
        ends |= {StopReason.CANCELLED: "cancelled"}
        assert history(again).split("\n")[1:] == [
            "  attempt  began after  took   next after  outcome",
            "  1        0s           0s     1s          OSError: refused",
            "  2        1s           0s     1m          the result 503",
            f"  3        1m1s         500ms              {ends.get(reason, 'dead')}",
        ]
