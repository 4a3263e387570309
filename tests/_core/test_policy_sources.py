"""Policies that a function returns, once for each call."""

import asyncio
import inspect
import traceback
from functools import partial
from types import SimpleNamespace

import pytest

from retrykit import (
    ConfigError,
    Policy,
    aretry,
    aretrying,
    policy_of,
    resume,
    retry,
    retrying,
    state_of,
    with_policy,
)
from retrykit.schedules import constant


class Settings:
    def __init__(self):
        self.attempts = 2
        self.asked = 0

    def policy(self):
        self.asked += 1
        return Policy(max_attempts=self.attempts, schedule=constant(1), on=OSError)


@pytest.fixture
def settings():
    return Settings()


def failing():
    raise OSError


async def afailing():
    raise OSError


def attempts(call):
    with pytest.raises(OSError) as caught:
        call()
    return state_of(caught.value).attempt


def test_each_call_has_the_policy_of_its_moment(clock, settings):
    fetch = retry(policy=settings.policy)(failing)
    assert settings.asked == 0
    assert attempts(fetch) == 2
    settings.attempts = 4
    assert attempts(fetch) == 4
    assert settings.asked == 2


@pytest.mark.parametrize("decorate", [retry, aretry])
def test_coroutines_have_it_too(clock, settings, decorate):
    fetch = decorate(policy=settings.policy)(afailing)
    assert inspect.iscoroutinefunction(fetch)
    for settings.attempts in (2, 3):
        assert attempts(lambda: asyncio.run(fetch())) == settings.attempts


def test_a_built_in_without_a_signature_can_be_asked(clock):
    policies = SimpleNamespace(current=Policy(max_attempts=3, on=OSError))
    fetch = retry(policy=partial(getattr, policies, "current"))(failing)
    assert attempts(fetch) == 3


def test_a_policy_that_stays_keeps_its_driver(clock):
    policy, built = Policy(schedule=[1]), []

    def source():
        built.append(1)
        return policy

    fetch = retry(policy=source, name="fetch")(lambda: "data")
    assert [fetch(), fetch()] == ["data", "data"]
    assert policy_of(fetch) is policy_of(fetch)
    assert policy_of(fetch).name == "fetch"


def test_other_settings_change_every_policy(clock, settings):
    fetch = retry(policy=settings.policy, max_attempts=3)(failing)
    assert attempts(fetch) == 3
    assert attempts(with_policy(fetch, max_attempts=1)) == 1
    settings.attempts = 9
    assert policy_of(with_policy(fetch, name="fetch")).max_attempts == 3
    assert attempts(with_policy(failing, settings.policy)) == 9


def test_tracebacks_have_no_frame_of_it(clock, settings):
    fetch = retry(policy=settings.policy)(failing)
    with pytest.raises(OSError) as caught:
        fetch()
    frames = [each.name for each in traceback.extract_tb(caught.value.__traceback__)]
    assert frames == ["test_tracebacks_have_no_frame_of_it", "failing"]


def test_methods_are_bound(clock, settings):
    class Client:
        @retry(policy=settings.policy)
        def fetch(self):
            raise OSError

        @classmethod
        @retry(policy=settings.policy)
        def create(cls):
            raise OSError

    assert attempts(Client().fetch) == 2
    assert attempts(Client.create) == 2


def test_a_loop_asks_once(clock, settings):
    loops = retrying(settings.policy, name="loop")

    def block():
        for attempt in loops:
            with attempt:
                failing()

    assert attempts(block) == 2
    settings.attempts = 3
    assert attempts(block) == 3
    assert settings.asked == 2
    assert "Settings.policy" in repr(loops)


def test_an_async_loop_asks_once(clock, settings):
    async def block():
        async for attempt in aretrying(settings.policy):
            with attempt:
                failing()

    assert attempts(lambda: asyncio.run(block())) == 2


def test_a_call_is_resumed_under_the_policy_of_the_moment(clock, settings):
    fetch = retry(policy=settings.policy)(failing)
    with pytest.raises(OSError) as caught:
        fetch()
    settings.attempts = 5
    assert attempts(resume(fetch, state_of(caught.value))) == 5


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (lambda: None, "policy must be a Policy from each call of <lambda>, got None"),
        (lambda: {"max_attempts": 3}, "a Policy from each call of <lambda>, got {"),
    ],
    ids=["none", "dict"],
)
def test_a_function_that_returns_no_policy_is_an_error(source, message):
    with pytest.raises(ConfigError, match=message):
        retry(policy=source)(failing)()
    with pytest.raises(ConfigError, match=message):
        next(iter(retrying(source)))


async def asource():
    return Policy()


async def apredicate(_result):
    return True


@pytest.mark.parametrize("source", [lambda _settings: Policy(), asource])
@pytest.mark.parametrize(
    "write",
    [
        lambda source: retry(policy=source),
        lambda source: aretry(policy=source),
        retrying,
        lambda source: with_policy(failing, source),
    ],
)
def test_a_function_that_cannot_be_asked_is_an_error(source, write):
    rule = "policy must be a Policy, or a sync function without parameters"
    with pytest.raises(ConfigError, match=rule):
        write(source)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda: retry(policy=Policy), r"policy must be a Policy, .*Policy\(\)"),
        (lambda: retry(policy=5), "write retry.max_attempts=5"),
        (lambda: retry(policy="fetch"), "a Policy, or a function that returns one"),
        (lambda: retry(Policy(), policy=Policy()), "policy must be given once"),
        (lambda: retry(failing, policy=Policy()), "write retry...."),
        (lambda: retrying(Policy), "a Policy, or a function that returns one"),
    ],
    ids=["class", "number", "string", "twice", "function", "class for a block"],
)
def test_what_is_no_policy_is_an_error(write, message):
    with pytest.raises(ConfigError, match=message):
        write()


def test_what_the_function_makes_wrong_is_an_error_of_the_call():
    fetch = retry(policy=lambda: Policy(on_result=apredicate))(failing)
    with pytest.raises(ConfigError, match="on_result must be a sync function"):
        fetch()


def test_a_generator_function_is_rejected_where_it_is_decorated(settings):
    def generate():
        yield 1

    with pytest.raises(ConfigError, match="not a generator function"):
        retry(policy=settings.policy)(generate)


def annotated() -> Policy:
    return Policy()


def test_a_function_that_returns_a_policy_is_not_decorated():
    rule = "fn must be a function to retry, got .*; write retry.policy=annotated."
    with pytest.raises(ConfigError, match=rule):
        retry(annotated)


@pytest.mark.parametrize("name", ["max_attempts", "max_elapsed"])
def test_a_limit_that_is_a_function_is_told_of_it(name):
    with pytest.raises(ConfigError, match=r"write retry\(policy=function\)"):
        Policy(**{name: lambda: 3})
