import traceback
from pathlib import Path

import pytest

import retrykit
from retrykit import (
    ConfigError,
    GiveUp,
    Policy,
    RetryAfter,
    RetryError,
    StopReason,
    current_state,
    retry,
    state_of,
)
from retrykit.schedules import constant

DOUBLING = Policy(schedule=[1, 2, 4])
PACKAGE = str(Path(retrykit.__file__).parent)


def test_returns_the_value_after_waiting_as_scheduled(colour, clock, flaky):
    fetch = flaky(OSError("one"), OSError("two"), "value")
    assert colour(DOUBLING)(fetch)() == "value"
    assert clock.sleeps == [1.0, 2.0]


def test_does_not_wait_when_nothing_fails(colour, clock, flaky):
    fetch = flaky("value")
    assert colour(DOUBLING)(fetch)() == "value"
    assert (len(fetch.calls), clock.sleeps) == (1, [])


def test_passes_arguments_to_every_attempt(colour, clock):
    seen = []

    @colour(DOUBLING)
    def fetch(*args, **kwargs):
        seen.append((args, kwargs))
        if len(seen) < 3:
            raise OSError

    fetch(1, key="k")
    assert seen == [((1,), {"key": "k"})] * 3
    assert clock.sleeps == [1.0, 2.0]


def test_lets_the_last_error_out_with_a_note(colour, clock, flaky):
    last = OSError("last")
    fetch = flaky(OSError("first"), OSError("second"), OSError("third"), last)
    with pytest.raises(OSError) as caught:
        colour(DOUBLING)(fetch)()
    assert caught.value is last
    assert last.__notes__ == [
        "retrykit: gave up after 4 attempts in 7s: the schedule has ended"
    ]
    assert clock.sleeps == [1.0, 2.0, 4.0]


def test_says_why_the_first_attempt_was_the_last(colour, clock, flaky):
    error = OSError("busy")
    with pytest.raises(OSError):
        colour(Policy(schedule=["2m"], max_elapsed="1m"))(flaky(error))()
    (note,) = error.__notes__
    reason = "no time is left for another attempt"
    assert note == f"retrykit: gave up after 1 attempt in 0s: {reason}"
    assert clock.sleeps == []


def test_leaves_no_note_on_an_error_that_is_not_to_be_retried(colour, clock, flaky):
    error = KeyError("unknown")
    with pytest.raises(KeyError):
        colour(DOUBLING, on=OSError)(flaky(error))()
    assert not hasattr(error, "__notes__")
    assert clock.sleeps == []


def test_one_error_object_raised_again_and_again_keeps_one_note(colour, clock):
    error = OSError("the same")

    @colour(DOUBLING)
    def fetch():
        raise error

    for _ in range(3):
        with pytest.raises(OSError):
            fetch()
    assert len(error.__notes__) == 1
    assert len(clock.sleeps) == 9


def test_notes_of_the_user_stay(colour, clock, flaky):
    error = OSError("refused")
    error.add_note("host: example")
    with pytest.raises(OSError):
        colour(schedule=[1])(flaky(OSError(), error))()
    assert error.__notes__[0] == "host: example"
    assert len(error.__notes__) == 2
    assert clock.sleeps == [1.0]


def test_counts_the_first_call_among_the_attempts(colour, clock, flaky):
    fetch = flaky(*[OSError()] * 9)
    with pytest.raises(OSError) as caught:
        colour(schedule=constant(1), max_attempts=3)(fetch)()
    assert (len(fetch.calls), clock.sleeps) == (3, [1.0, 1.0])
    assert state_of(caught.value).stop_reason is StopReason.ATTEMPTS


def test_tells_in_the_handler_what_happened(colour, clock):
    @colour(DOUBLING)
    def fetch():
        clock.advance(0.5)
        raise OSError(current_state().attempt)

    with pytest.raises(OSError) as caught:
        fetch()
    state = state_of(caught.value)
    assert [f.attempt for f in state.failures] == [1, 2, 3, 4]
    assert [f.error.args for f in state.failures] == [(1,), (2,), (3,), (4,)]
    assert [f.started for f in state.failures] == [0.0, 1.5, 4.0, 8.5]
    assert [f.duration for f in state.failures] == [0.5] * 4
    assert [f.delay for f in state.failures] == [1.0, 2.0, 4.0, None]
    assert state.errors[-1] is caught.value
    assert (state.attempt, state.elapsed, state.total_delay) == (4, 9.0, 7.0)
    assert (state.status, state.next_delay) == ("dead", None)
    assert state.stop_reason is StopReason.SCHEDULE_ENDED


def test_tells_inside_the_function_what_has_happened_so_far(colour, clock):
    seen = []

    @colour(DOUBLING, max_elapsed=10)
    def fetch():
        state = current_state()
        seen.append((state.attempt, len(state.failures), state.remaining))
        clock.advance(1)
        if state.attempt < 3:
            raise OSError
        return current_state() is state

    assert fetch()
    assert seen == [(1, 0, 10.0), (2, 1, 8.0), (3, 2, 5.0)]


def test_a_call_has_one_state_from_its_first_attempt_on(colour, clock):
    states = []

    @colour(DOUBLING)
    def fetch():
        states.append(current_state())
        raise OSError

    with pytest.raises(OSError) as caught:
        fetch()
    assert len({id(state) for state in states}) == 1
    assert state_of(caught.value).seed == states[0].seed
    assert len(clock.sleeps) == 3


def test_there_is_no_state_outside_of_a_call(colour, clock, flaky):
    with pytest.raises(LookupError, match="outside a retried call"):
        current_state()
    colour(DOUBLING)(flaky(OSError(), "value"))()
    with pytest.raises(LookupError):
        current_state()
    assert clock.sleeps == [1.0]


def test_a_call_inside_of_a_call_has_its_own_state(clock):
    @retry(schedule=[5, 5])
    def inner():
        attempts.append(("inner", current_state().attempt))
        if current_state().attempt < 3:
            raise OSError

    @retry(schedule=[1])
    def outer():
        inner()
        attempts.append(("outer", current_state().attempt))

    attempts = []
    outer()
    assert attempts == [("inner", 1), ("inner", 2), ("inner", 3), ("outer", 1)]
    assert clock.sleeps == [5.0, 5.0]


@pytest.mark.parametrize(
    ("settings", "outcomes", "reason"),
    [
        ({"max_attempts": 2}, [OSError(), OSError()], StopReason.ATTEMPTS),
        ({"max_elapsed": 0.5}, [OSError()], StopReason.ELAPSED),
        ({"schedule": []}, [OSError()], StopReason.SCHEDULE_ENDED),
        ({"on": KeyError}, [OSError()], StopReason.NOT_RETRYABLE),
        ({"give_up_on": OSError, "on": Exception}, [OSError()], StopReason.GAVE_UP),
        ({}, [GiveUp(OSError())], StopReason.GAVE_UP),
        ({}, [KeyboardInterrupt()], StopReason.CANCELLED),
        ({}, [OSError(), "value"], StopReason.SUCCEEDED),
    ],
    ids=lambda value: value.name if isinstance(value, StopReason) else "",
)
def test_every_call_ends_for_a_reason(colour, clock, flaky, settings, outcomes, reason):
    heard = []
    policy = Policy(schedule=constant(1), observers=[heard.append]).replace(**settings)
    try:
        colour(policy)(flaky(*outcomes))()
    except (OSError, KeyboardInterrupt) as error:
        assert state_of(error).stop_reason is reason
    assert heard[-1].state.stop_reason is reason
    assert len(clock.sleeps) == len(outcomes) - 1


def test_a_predicate_chooses_what_is_retried(colour, clock, flaky):
    def busy(error):
        return error.args == ("busy",)

    with pytest.raises(OSError, match="gone"):
        colour(DOUBLING, on=busy)(flaky(OSError("busy"), OSError("gone")))()
    assert clock.sleeps == [1.0]


def test_an_async_predicate_chooses_where_calls_are_awaited(clock, flaky):
    import asyncio

    from retrykit import aretry

    async def busy(error):
        await asyncio.sleep(0)
        return error.args == ("busy",)

    async def fetch():
        return outcomes()

    outcomes = flaky(OSError("busy"), OSError("gone"))
    with pytest.raises(OSError, match="gone"):
        asyncio.run(aretry(DOUBLING, on=busy)(fetch)())
    assert clock.sleeps == [1.0]


def test_a_refused_result_is_a_failure(colour, clock, flaky):
    fetch = flaky(None, None, "value")
    assert colour(DOUBLING, on_result=lambda x: x is None)(fetch)() == "value"
    assert clock.sleeps == [1.0, 2.0]


def test_results_refused_to_the_end_become_a_retry_error(colour, clock, flaky):
    with pytest.raises(RetryError) as caught:
        colour(schedule=[1], on_result=lambda x: x == 503)(flaky(503, 503))()
    told = "gave up after 2 attempts in 1s: the schedule has ended; last failure: "
    assert str(caught.value).endswith(f"{told}a rejected result of type int")
    assert [f.result for f in caught.value.state.failures] == [503, 503]
    assert caught.value.state.errors == ()
    assert clock.sleeps == [1.0]


def test_a_wrapper_is_raised_where_the_policy_asks_for_it(colour, clock, flaky):
    last = OSError("refused")
    with pytest.raises(RetryError) as caught:
        colour(schedule=[1], raises="retry_error")(flaky(OSError(), last))()
    assert caught.value.__cause__ is last
    assert caught.value.state is state_of(caught.value)
    assert str(caught.value).endswith("; last failure: OSError: refused")
    assert clock.sleeps == [1.0]


def test_a_group_of_all_errors_is_raised_where_the_policy_asks_for_it(
    colour, clock, flaky
):
    errors = [OSError("one"), KeyError("two")]
    with pytest.raises(ExceptionGroup) as caught:
        colour(schedule=[1], raises="group")(flaky(*errors))()
    assert caught.value.exceptions == tuple(errors)
    assert "gave up after 2 attempts in 1s" in str(caught.value)
    assert state_of(caught.value).errors == tuple(errors)
    assert clock.sleeps == [1.0]


@pytest.mark.parametrize("raises", ["last", "retry_error", "group"])
def test_an_error_that_is_not_retried_is_let_out_as_it_is(colour, flaky, raises):
    error = KeyError("unknown")
    with pytest.raises(KeyError) as caught:
        colour(on=OSError, raises=raises)(flaky(error))()
    assert caught.value is error


def test_the_function_may_ask_for_a_delay(colour, clock, flaky):
    fetch = flaky(RetryAfter("30s"), RetryAfter(0), "value")
    assert colour(DOUBLING)(fetch)() == "value"
    assert clock.sleeps == [30.0, 0.0]


def test_a_delay_asked_for_is_still_held_to_the_limits(colour, clock, flaky):
    error = OSError("busy")
    fetch = flaky(RetryAfter(1, error), RetryAfter(61, error))
    with pytest.raises(OSError) as caught:
        colour(DOUBLING)(fetch)()
    assert caught.value is error
    assert state_of(error).stop_reason is StopReason.ELAPSED
    assert clock.sleeps == [1.0]


def test_a_delay_is_asked_for_whatever_the_policy_retries(colour, clock, flaky):
    fetch = flaky(RetryAfter(3), "value")
    assert colour(DOUBLING, on=KeyError)(fetch)() == "value"
    assert clock.sleeps == [3.0]


def test_the_function_may_give_up_with_a_cause(colour, clock):
    cause = PermissionError("revoked")

    @colour(DOUBLING)
    def fetch():
        if current_state().attempt == 1:
            raise OSError
        raise GiveUp(cause)

    with pytest.raises(PermissionError) as caught:
        fetch()
    assert caught.value is cause
    assert state_of(cause).stop_reason is StopReason.GAVE_UP
    assert state_of(cause).errors[-1] is cause
    assert cause.__context__ is None
    assert clock.sleeps == [1.0]


def test_a_signal_speaks_for_the_error_that_it_is_raised_from(colour):
    cause = PermissionError("revoked")

    @colour(DOUBLING)
    def fetch():
        raise GiveUp from cause

    with pytest.raises(PermissionError) as caught:
        fetch()
    assert caught.value is cause


@pytest.mark.parametrize("signal", [GiveUp(), RetryAfter(0)], ids=repr)
@pytest.mark.parametrize("deep", [False, True], ids=["here", "in a function"])
def test_a_signal_speaks_for_the_error_that_is_handled_where_it_is_raised(
    colour, signal, deep
):
    cause = PermissionError("revoked")

    def refuse():
        try:
            raise cause
        except PermissionError:
            raise signal  # noqa: B904  that is what is tested

    @colour(schedule=[0])
    def fetch():
        if deep:
            refuse()
        try:
            raise cause
        except PermissionError:
            raise signal  # noqa: B904  that is what is tested

    with pytest.raises(PermissionError) as caught:
        fetch()
    assert caught.value is cause
    assert state_of(cause).errors[-1] is cause


def test_a_signal_from_nothing_speaks_for_itself(colour):
    @colour(DOUBLING)
    def fetch():
        try:
            raise PermissionError
        except PermissionError:
            raise GiveUp from None

    with pytest.raises(GiveUp):
        fetch()


def test_a_signal_does_not_speak_for_what_is_handled_around_the_call(colour):
    @colour(DOUBLING)
    def fetch():
        raise GiveUp

    with pytest.raises(GiveUp):
        try:
            raise KeyError("around")
        except KeyError:
            fetch()


def test_a_signal_without_a_cause_is_let_out_itself(colour):
    @colour(DOUBLING)
    def fetch():
        raise GiveUp

    with pytest.raises(GiveUp, match="asked to give up") as caught:
        fetch()
    assert str(GiveUp(OSError("refused"))) == "gave up: refused"
    assert state_of(caught.value).errors == (caught.value,)


def test_an_error_in_a_predicate_does_not_replace_the_users(colour, clock, caplog):
    def broken(error):
        raise ZeroDivisionError

    error = OSError("refused")

    @colour(on=broken)
    def fetch():
        raise error

    with pytest.raises(OSError) as caught:
        fetch()
    assert caught.value is error
    assert error.__notes__ == [
        "retrykit: not retried, because its policy failed with ZeroDivisionError: "
    ]
    assert "ZeroDivisionError" in caplog.text
    assert state_of(error).stop_reason is StopReason.NOT_RETRYABLE
    assert clock.sleeps == []


@pytest.mark.parametrize("delay", [-1.0, float("nan"), float("inf"), "soon"])
def test_an_error_in_a_schedule_does_not_replace_the_users(colour, caplog, delay):
    def broken():
        yield delay

    error = OSError("refused")

    @colour(schedule=broken)
    def fetch():
        raise error

    with pytest.raises(OSError) as caught:
        fetch()
    assert caught.value is error
    assert "not retried, because its policy failed with" in error.__notes__[0]
    assert "schedule[0] must be" in error.__notes__[0]
    assert caplog.records


def test_an_error_in_a_schedule_comes_out_where_a_result_was_refused(colour, clock):
    def endless():
        yield 1.0
        yield "soon"

    refusing = colour(schedule=endless, on_result=lambda _page: True)
    with pytest.raises(ConfigError, match="must be a duration") as caught:
        refusing(lambda: "page")()
    state = state_of(caught.value)
    assert (state.attempt, len(state.failures)) == (2, 1)
    assert clock.sleeps == [1.0]


def test_an_error_in_the_result_predicate_is_let_out(colour, flaky):
    def broken(result):
        raise ZeroDivisionError

    fetch = flaky("value")
    with pytest.raises(ZeroDivisionError):
        colour(on_result=broken)(fetch)()
    assert len(fetch.calls) == 1


def test_a_run_returns_what_came_of_it(colour, clock, flaky):
    outcome = colour.run(DOUBLING, flaky(OSError(), "value"))
    assert (outcome.ok, outcome.value, outcome.error) == (True, "value", None)
    assert outcome.state.status == "succeeded"
    assert len(outcome.state.failures) == 1
    last = OSError("last")
    outcome = colour.run(DOUBLING.replace(schedule=[1]), flaky(OSError(), last))
    assert (outcome.ok, outcome.value, outcome.error) == (False, None, last)
    assert outcome.state.stop_reason is StopReason.SCHEDULE_ENDED
    assert clock.sleeps == [1.0, 1.0]


def test_a_run_raises_what_its_policy_does_not_handle(colour, flaky):
    policy = DOUBLING.replace(on=OSError)
    with pytest.raises(KeyError):
        colour.run(policy, flaky(KeyError("unknown")))
    with pytest.raises(KeyboardInterrupt):
        colour.run(policy, flaky(KeyboardInterrupt()))


def test_the_parts_of_a_group_have_the_state_too(colour, clock, flaky):
    found = []
    fetch = flaky(OSError("one"), KeyError("two"))
    try:
        colour(schedule=[1], raises="group")(fetch)()
    except* OSError as part:
        found.append(state_of(part))
    except* KeyError as part:
        found.append(state_of(part))
    assert [len(state.errors) for state in found] == [2, 2]
    assert clock.sleeps == [1.0]


def test_the_traceback_of_the_users_error_has_no_frame_of_ours(colour, clock):
    @colour(schedule=[1])
    def fetch():
        raise OSError

    with pytest.raises(OSError) as caught:
        fetch()
    files = [
        frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)
    ]
    assert [file for file in files if file.startswith(PACKAGE)] == []
    assert files[-1] == __file__
    assert clock.sleeps == [1.0]


def test_the_cause_of_a_signal_keeps_what_it_was_raised_in():
    inner = KeyError("inner")

    @retry
    def fetch():
        try:
            raise inner
        except KeyError:
            try:
                raise OSError("cause")
            except OSError as cause:
                raise GiveUp(cause) from None

    with pytest.raises(OSError) as caught:
        try:
            raise ValueError("around")
        except ValueError:
            fetch()
    assert caught.value.__context__ is inner


def test_an_error_with_odd_notes_is_the_users_all_the_same(colour):
    error = OSError("odd")
    error.__notes__ = None
    with pytest.raises(OSError) as caught:
        colour(schedule=[0])(failing_with(error))()
    assert caught.value is error


def failing_with(error):
    def fetch():
        raise error

    return fetch


def test_one_signal_may_be_raised_again_and_again(colour, clock, flaky):
    stop, busy = GiveUp(), RetryAfter(3)
    for _ in range(2):
        with pytest.raises(GiveUp):
            colour(schedule=[0, 0])(flaky(stop, "value"))()
        assert colour(schedule=[0], on=KeyError)(flaky(busy, "value"))() == "value"
    assert clock.sleeps == [3.0, 3.0]
