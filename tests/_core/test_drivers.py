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


def test_returns_the_value_after_waiting_as_scheduled(backend, clock, flaky):
    fetch = flaky(OSError("one"), OSError("two"), "value")
    assert backend(DOUBLING)(fetch)() == "value"
    assert clock.sleeps == [1.0, 2.0]


def test_does_not_sleep_if_nothing_fails(backend, clock, flaky):
    fetch = flaky("value")
    assert backend(DOUBLING)(fetch)() == "value"
    assert (len(fetch.calls), clock.sleeps) == (1, [])


def test_passes_arguments_to_every_attempt(backend, clock):
    seen = []

    @backend(DOUBLING)
    def fetch(*args, **kwargs):
        seen.append((args, kwargs))
        if len(seen) < 3:
            raise OSError

    fetch(1, key="k")
    assert seen == [((1,), {"key": "k"})] * 3
    assert clock.sleeps == [1.0, 2.0]


def test_raises_the_last_error_with_a_note(backend, clock, flaky):
    last = OSError("last")
    fetch = flaky(OSError("first"), OSError("second"), OSError("third"), last)
    with pytest.raises(OSError) as caught:
        backend(DOUBLING)(fetch)()
    assert caught.value is last
    assert last.__notes__ == [
        "retrykit: gave up after 4 attempts in 7 s: the schedule has ended"
    ]
    assert clock.sleeps == [1.0, 2.0, 4.0]


def two_minutes():
    yield "2m"


def test_the_note_says_why_there_was_no_second_attempt(backend, clock, flaky):
    error = OSError("busy")
    with pytest.raises(OSError):
        backend(Policy(schedule=two_minutes, max_elapsed="1m"))(flaky(error))()
    (note,) = error.__notes__
    reason = "max_elapsed=1m would be exceeded"
    assert note == f"retrykit: gave up after 1 attempt in 0 s: {reason}"
    assert clock.sleeps == []


def test_adds_no_note_to_an_error_that_is_not_retryable(backend, clock, flaky):
    error = KeyError("unknown")
    with pytest.raises(KeyError):
        backend(DOUBLING, on=OSError)(flaky(error))()
    assert not hasattr(error, "__notes__")
    assert clock.sleeps == []


def test_one_error_object_raised_repeatedly_has_one_note(backend, clock):
    error = OSError("the same")

    @backend(DOUBLING)
    def fetch():
        raise error

    for _ in range(3):
        with pytest.raises(OSError):
            fetch()
    assert len(error.__notes__) == 1
    assert len(clock.sleeps) == 9


def test_notes_of_the_user_are_kept(backend, clock, flaky):
    error = OSError("refused")
    error.add_note("host: example")
    with pytest.raises(OSError):
        backend(schedule=[1])(flaky(OSError(), error))()
    assert error.__notes__[0] == "host: example"
    assert len(error.__notes__) == 2
    assert clock.sleeps == [1.0]


def test_max_attempts_includes_the_first_call(backend, clock, flaky):
    fetch = flaky(*[OSError()] * 9)
    with pytest.raises(OSError) as caught:
        backend(schedule=constant(1), max_attempts=3)(fetch)()
    assert (len(fetch.calls), clock.sleeps) == (3, [1.0, 1.0])
    assert state_of(caught.value).stop_reason is StopReason.ATTEMPTS


def test_the_handler_of_an_error_can_read_its_state(backend, clock):
    @backend(DOUBLING)
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


def test_the_function_can_read_the_state_of_its_call(backend, clock):
    seen = []

    @backend(DOUBLING, max_elapsed=10)
    def fetch():
        state = current_state()
        seen.append((state.attempt, len(state.failures), state.remaining))
        clock.advance(1)
        if state.attempt < 3:
            raise OSError
        return current_state() is state

    assert fetch()
    assert seen == [(1, 0, 10.0), (2, 1, 8.0), (3, 2, 5.0)]


def test_a_call_has_one_state_in_all_attempts(backend, clock):
    states = []

    @backend(DOUBLING)
    def fetch():
        states.append(current_state())
        raise OSError

    with pytest.raises(OSError) as caught:
        fetch()
    assert len({id(state) for state in states}) == 1
    assert state_of(caught.value).seed == states[0].seed
    assert len(clock.sleeps) == 3


def test_there_is_no_state_outside_of_a_call(backend, clock, flaky):
    with pytest.raises(LookupError, match="outside a retried call"):
        current_state()
    backend(DOUBLING)(flaky(OSError(), "value"))()
    with pytest.raises(LookupError):
        current_state()
    assert clock.sleeps == [1.0]


def test_a_nested_call_has_its_own_state(clock):
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
        ({"max_elapsed": 1.5}, [OSError(), OSError()], StopReason.ELAPSED),
        ({"schedule": [1]}, [OSError(), OSError()], StopReason.SCHEDULE_ENDED),
        ({"on": KeyError}, [OSError()], StopReason.NOT_RETRYABLE),
        ({"give_up_on": OSError, "on": Exception}, [OSError()], StopReason.GAVE_UP),
        ({}, [GiveUp(OSError())], StopReason.GAVE_UP),
        ({}, [KeyboardInterrupt()], StopReason.CANCELLED),
        ({}, [OSError(), "value"], StopReason.SUCCEEDED),
    ],
    ids=lambda value: value.name if isinstance(value, StopReason) else "",
)
def test_every_ended_call_has_a_stop_reason(
    backend, clock, flaky, settings, outcomes, reason
):
    events = []
    policy = Policy(schedule=constant(1), observers=[events.append]).replace(**settings)
    try:
        backend(policy)(flaky(*outcomes))()
    except (OSError, KeyboardInterrupt) as error:
        assert state_of(error).stop_reason is reason
    assert events[-1].state.stop_reason is reason
    assert len(clock.sleeps) == len(outcomes) - 1


def test_a_predicate_selects_the_retried_errors(backend, clock, flaky):
    def busy(error):
        return error.args == ("busy",)

    with pytest.raises(OSError, match="gone"):
        backend(DOUBLING, on=busy)(flaky(OSError("busy"), OSError("gone")))()
    assert clock.sleeps == [1.0]


def test_an_async_predicate_selects_the_retried_errors(clock, flaky):
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


def test_a_rejected_result_is_retried(backend, clock, flaky):
    fetch = flaky(None, None, "value")
    assert backend(DOUBLING, on_result=lambda x: x is None)(fetch)() == "value"
    assert clock.sleeps == [1.0, 2.0]


def test_a_result_rejected_every_time_raises_a_retry_error(backend, clock, flaky):
    with pytest.raises(RetryError) as caught:
        backend(schedule=[1], on_result=lambda x: x == 503)(flaky(503, 503))()
    message = "gave up after 2 attempts in 1 s: the schedule has ended; last failure: "
    assert str(caught.value).endswith(f"{message}a rejected result of type int")
    assert [f.result for f in caught.value.state.failures] == [503, 503]
    assert caught.value.state.errors == ()
    assert clock.sleeps == [1.0]


def test_raises_a_retry_error_if_the_policy_says_so(backend, clock, flaky):
    last = OSError("refused")
    with pytest.raises(RetryError) as caught:
        backend(schedule=[1], raises="retry_error")(flaky(OSError(), last))()
    assert caught.value.__cause__ is last
    assert caught.value.state is state_of(caught.value)
    assert str(caught.value).endswith("; last failure: OSError: refused")
    assert clock.sleeps == [1.0]


def test_raises_a_group_of_all_errors_if_the_policy_says_so(backend, clock, flaky):
    errors = [OSError("one"), KeyError("two")]
    with pytest.raises(ExceptionGroup) as caught:
        backend(schedule=[1], raises="group")(flaky(*errors))()
    assert caught.value.exceptions == tuple(errors)
    assert "gave up after 2 attempts in 1 s" in str(caught.value)
    assert state_of(caught.value).errors == tuple(errors)
    assert clock.sleeps == [1.0]


@pytest.mark.parametrize("raises", ["last", "retry_error", "group"])
def test_an_error_that_is_not_retryable_is_raised_unchanged(backend, flaky, raises):
    error = KeyError("unknown")
    with pytest.raises(KeyError) as caught:
        backend(on=OSError, raises=raises)(flaky(error))()
    assert caught.value is error


def test_retry_after_sets_the_delay(backend, clock, flaky):
    fetch = flaky(RetryAfter("30s"), RetryAfter(0), "value")
    assert backend(DOUBLING)(fetch)() == "value"
    assert clock.sleeps == [30.0, 0.0]


def test_retry_after_does_not_exceed_the_limits(backend, clock, flaky):
    error = OSError("busy")
    fetch = flaky(RetryAfter(1, error), RetryAfter(61, error))
    with pytest.raises(OSError) as caught:
        backend(DOUBLING, max_elapsed="1m")(fetch)()
    assert caught.value is error
    assert state_of(error).stop_reason is StopReason.ELAPSED
    assert clock.sleeps == [1.0]


def test_retry_after_is_retried_whatever_the_conditions(backend, clock, flaky):
    fetch = flaky(RetryAfter(3), "value")
    assert backend(DOUBLING, on=KeyError)(fetch)() == "value"
    assert clock.sleeps == [3.0]


def test_give_up_raises_its_cause(backend, clock):
    cause = PermissionError("revoked")

    @backend(DOUBLING)
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


def test_a_signal_takes_the_error_it_is_raised_from(backend):
    cause = PermissionError("revoked")

    @backend(DOUBLING)
    def fetch():
        raise GiveUp from cause

    with pytest.raises(PermissionError) as caught:
        fetch()
    assert caught.value is cause


@pytest.mark.parametrize("signal", [GiveUp(), RetryAfter(0)], ids=repr)
@pytest.mark.parametrize("deep", [False, True], ids=["here", "in a function"])
def test_a_signal_takes_the_error_that_is_being_handled(backend, signal, deep):
    cause = PermissionError("revoked")

    def refuse():
        try:
            raise cause
        except PermissionError:
            raise signal  # noqa: B904  that is what is tested

    @backend(schedule=[0])
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


def test_a_signal_raised_from_none_is_raised_itself(backend):
    @backend(DOUBLING)
    def fetch():
        try:
            raise PermissionError
        except PermissionError:
            raise GiveUp from None

    with pytest.raises(GiveUp):
        fetch()


def test_a_signal_does_not_take_an_error_handled_around_the_call(backend):
    @backend(DOUBLING)
    def fetch():
        raise GiveUp

    with pytest.raises(GiveUp):
        try:
            raise KeyError("around")
        except KeyError:
            fetch()


def test_a_signal_without_a_cause_is_raised_itself(backend):
    @backend(DOUBLING)
    def fetch():
        raise GiveUp

    with pytest.raises(GiveUp, match="asked to give up") as caught:
        fetch()
    assert str(GiveUp(OSError("refused"))) == "gave up: refused"
    assert state_of(caught.value).errors == (caught.value,)


def test_an_error_in_a_predicate_does_not_replace_the_users_error(
    backend, clock, caplog
):
    def broken(error):
        raise ZeroDivisionError

    error = OSError("refused")

    @backend(on=broken)
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
def test_an_error_in_a_schedule_does_not_replace_the_users_error(
    backend, caplog, delay
):
    def broken():
        yield delay

    error = OSError("refused")

    @backend(schedule=broken)
    def fetch():
        raise error

    with pytest.raises(OSError) as caught:
        fetch()
    assert caught.value is error
    assert "not retried, because its policy failed with" in error.__notes__[0]
    assert "schedule[0] must be" in error.__notes__[0]
    assert caplog.records


def test_an_error_in_a_schedule_is_raised_after_a_rejected_result(backend, clock):
    def endless():
        yield 1.0
        yield "soon"

    refusing = backend(schedule=endless, on_result=lambda _page: True)
    with pytest.raises(ConfigError, match="must be a duration") as caught:
        refusing(lambda: "page")()
    state = state_of(caught.value)
    assert (state.attempt, len(state.failures)) == (2, 1)
    assert clock.sleeps == [1.0]


def test_an_error_in_on_result_is_raised(backend, flaky):
    def broken(result):
        raise ZeroDivisionError

    fetch = flaky("value")
    with pytest.raises(ZeroDivisionError):
        backend(on_result=broken)(fetch)()
    assert len(fetch.calls) == 1


def test_run_returns_an_outcome(backend, clock, flaky):
    outcome = backend.run(DOUBLING, flaky(OSError(), "value"))
    assert (outcome.ok, outcome.value, outcome.error) == (True, "value", None)
    assert outcome.state.status == "succeeded"
    assert len(outcome.state.failures) == 1
    last = OSError("last")
    outcome = backend.run(DOUBLING.replace(schedule=[1]), flaky(OSError(), last))
    assert (outcome.ok, outcome.value, outcome.error) == (False, None, last)
    assert outcome.state.stop_reason is StopReason.SCHEDULE_ENDED
    assert clock.sleeps == [1.0, 1.0]


def test_run_raises_base_exceptions(backend, flaky):
    policy = DOUBLING.replace(on=OSError)
    with pytest.raises(KeyError):
        backend.run(policy, flaky(KeyError("unknown")))
    with pytest.raises(KeyboardInterrupt):
        backend.run(policy, flaky(KeyboardInterrupt()))


def test_the_errors_in_a_group_have_the_state(backend, clock, flaky):
    found = []
    fetch = flaky(OSError("one"), KeyError("two"))
    try:
        backend(schedule=[1], raises="group")(fetch)()
    except* OSError as part:
        found.append(state_of(part))
    except* KeyError as part:
        found.append(state_of(part))
    assert [len(state.errors) for state in found] == [2, 2]
    assert clock.sleeps == [1.0]


def test_the_traceback_of_the_users_error_has_no_frame_of_retrykit(backend, clock):
    @backend(schedule=[1])
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


def test_the_cause_of_a_signal_keeps_its_context():
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


def test_an_error_with_unusual_notes_is_raised(backend):
    error = OSError("odd")
    error.__notes__ = None
    with pytest.raises(OSError) as caught:
        backend(schedule=[0])(failing_with(error))()
    assert caught.value is error


def failing_with(error):
    def fetch():
        raise error

    return fetch


def test_one_signal_object_may_be_raised_repeatedly(backend, clock, flaky):
    stop, busy = GiveUp(), RetryAfter(3)
    for _ in range(2):
        with pytest.raises(GiveUp):
            backend(schedule=[0, 0])(flaky(stop, "value"))()
        assert backend(schedule=[0], on=KeyError)(flaky(busy, "value"))() == "value"
    assert clock.sleeps == [3.0, 3.0]
