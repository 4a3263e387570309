"""A value in place of an error: a policy's fallback, and the outcome of a call."""

import threading
import weakref
from contextlib import suppress
from contextvars import copy_context

import anyio
import pytest

from retrykit import (
    ConfigError,
    GiveUp,
    Policy,
    RetryError,
    RetryState,
    StopReason,
    aretry,
    current_state,
    last_result,
    retry,
    retrying,
    state_of,
)
from retrykit.durable import Job
from retrykit.schedules import constant

TWICE = Policy(schedule=[1], on=OSError)


@pytest.mark.parametrize("value", [None, 0, "cached", [], {"a": 1}], ids=repr)
def test_a_value_is_returned_in_place_of_the_error(backend, clock, flaky, value):
    fetch = flaky(OSError(), OSError())
    assert backend(TWICE, fallback=value)(fetch)() is value
    assert (len(fetch.calls), clock.sleeps) == (2, [1.0])


def test_it_is_not_used_if_the_call_succeeds(backend, clock, flaky):
    assert backend(TWICE, fallback=0)(flaky(OSError(), "data"))() == "data"


def test_a_function_gets_the_state_and_returns_the_value(backend, clock, flaky):
    seen = []

    def cached(state):
        seen.append(state)
        return f"stale after {state.attempt}"

    error = OSError("down")
    assert backend(TWICE, fallback=cached)(flaky(error, error))() == "stale after 2"
    (state,) = seen
    assert (state.errors[-1], state.stop_reason) == (error, StopReason.SCHEDULE_ENDED)
    assert state.used_fallback
    assert state.status == "dead"


def test_the_last_rejected_result_can_be_the_value(backend, clock, flaky):
    def last_result(state):
        return state.failures[-1].result

    policy = TWICE.replace(on=(), on_result=lambda x: x < 5, fallback=last_result)
    assert backend(policy)(flaky(1, 2))() == 2


def test_an_async_function_is_awaited(clock, loop):
    async def cached(_state):
        return "stale"

    @aretry(TWICE, fallback=cached)
    async def fetch():
        raise OSError

    assert loop(fetch) == "stale"


@pytest.mark.parametrize(
    ("outcome", "reason", "changes"),
    [
        (OSError(), StopReason.ATTEMPTS, {"max_attempts": 1}),
        (OSError(), StopReason.ELAPSED, {"max_elapsed": 5, "schedule": constant(2)}),
        (GiveUp(OSError()), StopReason.GAVE_UP, {}),
        (OSError(), StopReason.GAVE_UP, {"give_up_on": ConnectionError}),
        (OSError(), StopReason.HINT, {"hint": lambda _: "2h"}),
    ],
)
def test_it_is_used_whatever_ends_the_retries(backend, clock, outcome, reason, changes):
    def fetch():
        raise ConnectionError if "give_up_on" in changes else outcome

    changes = {"schedule": [1]} | changes | {"fallback": lambda s: s.stop_reason}
    assert backend(on=OSError, **changes)(fetch)() is reason


def test_an_error_that_is_not_retryable_is_raised_all_the_same(backend, clock, flaky):
    error = KeyError("id")
    with pytest.raises(KeyError) as caught:
        backend(TWICE, fallback=0)(flaky(error))()
    assert caught.value is error
    assert not state_of(error).used_fallback


def test_a_cancelled_call_has_no_fallback(backend, clock, flaky):
    with pytest.raises(KeyboardInterrupt):
        backend(TWICE, fallback=0)(flaky(KeyboardInterrupt()))()


def test_an_error_of_the_function_has_the_last_error_as_its_context(clock, flaky):
    def broken(_state):
        raise LookupError

    error = OSError()
    with pytest.raises(LookupError) as caught:
        retry(TWICE, fallback=broken)(flaky(OSError(), error))()
    assert caught.value.__context__ is error


def test_an_outer_call_sees_a_success(clock, flaky):
    inner = retry(TWICE, fallback="stale")(flaky(OSError(), OSError()))
    assert retry(schedule=[5])(inner)() == "stale"
    assert clock.sleeps == [1.0]


def test_observers_see_that_it_is_used(clock, flaky):
    used = []
    hooks = {"gave_up": lambda event: used.append(event.state.used_fallback)}
    retry(TWICE, fallback=0, observers=hooks)(flaky(OSError(), OSError()))()
    assert used == [True]


def test_the_state_keeps_it_as_data(clock, flaky):
    states = []
    retry(TWICE, fallback=states.append)(flaky(OSError(), OSError()))()
    again = RetryState.from_dict(states[0].to_dict())
    assert (again.used_fallback, again.stop_detail) == (True, None)


class TestOutcome:
    def test_a_value_is_unwrapped(self, backend, clock, flaky):
        outcome = backend.run(TWICE, flaky("data"))
        assert (outcome.ok, outcome.value, outcome.error) == (True, "data", None)
        assert (outcome.unwrap(), outcome.value_or(0)) == ("data", "data")

    def test_an_error_is_raised_or_replaced(self, backend, clock, flaky):
        error = OSError()
        outcome = backend.run(TWICE, flaky(OSError(), error))
        assert (outcome.ok, outcome.value, outcome.error) == (False, None, error)
        assert outcome.value_or(0) == 0
        with pytest.raises(OSError) as caught:
            outcome.unwrap()
        assert caught.value is error

    def test_the_error_keeps_its_context(self, clock, flaky):
        outcome = TWICE.run(flaky(OSError(), OSError()))
        with pytest.raises(OSError) as caught:
            try:
                raise KeyError
            except KeyError:
                outcome.unwrap()
        assert not isinstance(caught.value.__context__, KeyError)

    def test_a_fallback_is_a_value(self, backend, clock, flaky):
        outcome = backend.run(TWICE.replace(fallback=0), flaky(OSError(), OSError()))
        assert (outcome.ok, outcome.value) == (True, 0)
        assert outcome.state.used_fallback

    def test_it_shows_only_what_users_need(self, clock, flaky):
        for outcome in (TWICE.run(flaky(1)), TWICE.run(flaky(OSError(), OSError()))):
            public = {name for name in dir(outcome) if not name.startswith("_")}
            needed = {"error", "ok", "state", "unwrap", "value", "value_or"}
            assert public == needed | {"replace"}


async def acached(_state):
    return 0


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda: Policy(fallback=list), "fallback must be a value, or a function of"),
        (lambda: Policy(fallback=lambda: 0), "a function that takes the state, got"),
        (lambda: retry(fallback=acached)(print), "fallback must be a sync function"),
        (lambda: retrying(fallback=0), "fallback must be left out where no function"),
    ],
    ids=["type", "no parameter", "async", "block"],
)
def test_a_fallback_that_cannot_work_is_an_error(write, message):
    with pytest.raises(ConfigError, match=message):
        write()


def test_a_function_that_returns_an_awaitable_is_an_error(clock, flaky):
    with pytest.raises(ConfigError, match="fallback must be a sync function"):
        # Not known to be async before it is called.
        hidden = lambda state: acached(state)  # noqa: E731, PLW0108
        retry(TWICE, fallback=hidden)(flaky(OSError(), OSError()))()


def test_a_job_cannot_have_one():
    with pytest.raises(ConfigError, match="fallback must be left out"):
        Job(print, Policy(fallback=0))


def test_retries_can_be_disabled_without_losing_it(flaky):
    from retrykit.testing import disable_retries

    with disable_retries():
        assert retry(TWICE, fallback="stale")(flaky(OSError()))() == "stale"


def test_a_wrapper_error_is_replaced_too(clock, flaky):
    policy = TWICE.replace(on_result=lambda x: x < 5, raises="retry_error")
    with pytest.raises(RetryError):
        retry(policy)(flaky(1, 1))()
    assert retry(policy, fallback=-1)(flaky(1, 1))() == -1


class TestLastResult:
    POLICY = TWICE.replace(on_result=lambda x: x < 5, fallback=last_result)

    def test_is_the_last_rejected_result(self, backend, clock, flaky):
        assert backend(self.POLICY)(flaky(1, 2))() == 2
        assert backend(self.POLICY)(flaky(OSError(), 2))() == 2

    def test_leaves_an_error_to_be_raised(self, backend, clock, flaky):
        error = OSError()
        with pytest.raises(OSError) as caught:
            backend(self.POLICY)(flaky(1, error))()
        assert caught.value is error
        assert not state_of(error).used_fallback


def test_an_error_of_the_function_is_no_outcome(backend, clock, flaky):
    policy = TWICE.replace(fallback=lambda state: state.result)
    with pytest.raises(AttributeError):
        backend.run(policy, flaky(OSError(), OSError()))


def test_the_state_of_a_fallback_has_the_function_and_the_arguments(backend, clock):
    def fetch(key, *, version=1):
        raise OSError(key, version)

    def mirror(state):
        assert current_state() is state
        return state.function.__name__, state.args, state.kwargs

    for settings in (
        {},
        {"observers": [id]},
        {"on_result": lambda result: False},
        {"max_attempts": 1},
    ):
        decorated = backend(TWICE, fallback=mirror, **settings)(fetch)
        assert decorated("a", version=2) == ("fetch", ("a",), {"version": 2})


def test_the_fallback_of_a_stopped_call_knows_it_too(clock):
    @retry(TWICE, fallback=lambda state: state.args, stop_event=SetAfter(2))
    def fetch(key):
        raise OSError

    assert fetch("a") == ("a",)


class SetAfter(threading.Event):
    """An event that is set once it has been looked at so often."""

    def __init__(self, looks):
        super().__init__()
        self.left = looks

    def is_set(self):
        self.left -= 1
        return self.left < 0


def test_an_async_fallback_knows_the_call_after_its_awaits_too(clock, loop):
    async def mirror(state):
        await anyio.lowlevel.checkpoint()
        assert current_state() is state
        return state.args

    @aretry(TWICE, fallback=mirror)
    async def fetch(key):
        raise OSError

    assert loop(lambda: fetch("a")) == ("a",)


def test_a_retried_call_in_a_fallback_has_its_own_state(backend, clock, flaky):
    second = retry(TWICE)(lambda key: (key, current_state().depth))

    def mirror(state):
        return second(*state.args), current_state() is state

    def fetch(key):
        raise OSError

    decorated = backend(TWICE, fallback=mirror)(fetch)
    assert decorated("a") == (("a", 0), True)


def test_a_method_has_its_object_as_the_first_argument(clock):
    class Client:
        @retry(TWICE, fallback=lambda state: state.args)
        def get(self, key):
            raise OSError

    client = Client()
    assert client.get("a") == (client, "a")


@pytest.mark.parametrize("quiet_log", [True, False], ids=["not logged", "logged"])
def test_the_function_finds_the_arguments_in_every_attempt(
    backend, clock, quiet_log, caplog
):
    caplog.set_level("ERROR" if quiet_log else "WARNING", "retrykit")
    seen, states = [], []

    def fetch(key, *, version):
        states.append(state := current_state())
        function = state.function.__name__
        seen.append((state.attempt, state.args, state.kwargs, function))
        if state.attempt < 3:
            raise OSError
        return key

    assert backend(schedule=[1, 1], on=OSError)(fetch)("a", version=2) == "a"
    assert seen == [(n, ("a",), {"version": 2}, "fetch") for n in (1, 2, 3)]
    with pytest.raises(LookupError, match="only available while a call runs"):
        _ = states[-1].args
    with pytest.raises(LookupError, match="only available while a call runs"):
        _ = states[-1].function


def test_the_nearest_call_is_the_one_whose_arguments_are_found(backend, clock):
    @retry(TWICE)
    def inner(key):
        return current_state().args

    def outer(key):
        return inner(f"{key}b"), current_state().args

    assert backend(TWICE)(outer)("a") == (("ab",), ("a",))


@pytest.mark.usefixtures("quiet")
def test_a_nested_function_finds_the_arguments_of_the_call_around_it():
    @retry(schedule=[0], on=OSError)
    def inner(key, outer):
        return current_state().args[0], outer.args

    @retry(schedule=[0], on=OSError)
    def outer(key):
        return inner("b", current_state())

    assert outer("a") == ("b", ("a",))


@pytest.mark.needs("threads")
@pytest.mark.usefixtures("quiet")
def test_other_threads_know_the_arguments_once_the_call_was_asked():
    def look():
        try:
            return current_state().args
        except LookupError as error:
            return str(error)

    def look_in_a_thread():
        seen = []
        run = copy_context().run
        thread = threading.Thread(target=lambda: seen.append(run(look)))
        thread.start()
        thread.join()
        return seen[0]

    @retry(schedule=[0], on=OSError)
    def fetch(key):
        return look_in_a_thread(), look(), look_in_a_thread()

    before, own, after = fetch("a")
    assert before == "state.args must be read in the thread or task of the call"
    assert own == after == ("a",)


def test_a_block_has_no_arguments(clock):
    for attempt in retrying(TWICE):
        with attempt:
            state = attempt.state
            assert (state.function, state.args, state.kwargs) == (None, (), {})


class Argument:
    """Something that only a call keeps alive."""


@pytest.mark.parametrize("fallback", [None, lambda state: state.used_fallback])
def test_the_arguments_are_released_when_the_call_ends(backend, clock, fallback):
    argument = Argument()
    gone, states = weakref.ref(argument), []

    def fetch(value):
        states.append(current_state())
        assert current_state().args == (value,)
        raise OSError

    backend(TWICE, fallback=fallback)(fetch)(argument)
    with suppress(OSError):
        backend(TWICE)(fetch)(argument)
    for state in states:
        # Their frames have the argument, too.
        for error in state.errors:
            error.__traceback__ = None
    del argument
    assert gone() is None
    with pytest.raises(LookupError):
        _ = states[-1].kwargs
    with pytest.raises(LookupError):
        _ = RetryState("fetch", 7, 0.0).args
