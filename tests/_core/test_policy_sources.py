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
    current_state,
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


@pytest.mark.parametrize("source", [asource])
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
    rule = "policy must be a Policy, or a sync function that returns one"
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


FEW, MANY = (Policy(max_attempts=n, schedule=[0] * 9, on=OSError) for n in (2, 4))


class Client:
    def __init__(self, policy):
        self.policy = policy

    def policy_of(self):
        return self.policy

    @retry(policy=policy_of)
    def fetch(self):
        raise OSError

    @aretry(policy=policy_of, name="afetch")
    async def afetch(self, *_urls, **_options):
        raise OSError


def test_a_policy_may_depend_on_the_object():
    for policy in (FEW, MANY, FEW):
        assert attempts(Client(policy).fetch) == policy.max_attempts
        call = Client(policy).afetch
        assert attempts(lambda: asyncio.run(call("u", fresh=True))) == (  # noqa: B023
            policy.max_attempts
        )


BY_NAME = {
    "positional": lambda tenant: MANY if tenant == "large" else FEW,
    "only by position": lambda tenant, /: MANY if tenant == "large" else FEW,
    "only by name": lambda *, tenant: MANY if tenant == "large" else FEW,
    "beside a default": lambda tenant, url=None: (
        MANY if (tenant, url) == LARGE else FEW
    ),
    "a default of its own": lambda tenant, other=1: MANY if tenant == "large" else FEW,
    "all": lambda *args, **kwargs: MANY if (args, kwargs) == (LARGE[:1], URL) else FEW,
    "all by name": lambda **kwargs: MANY if kwargs["tenant"] == "large" else FEW,
}
LARGE, URL = ("large", "u"), {"url": "u"}


@pytest.mark.parametrize("policy", BY_NAME.values(), ids=BY_NAME)
def test_a_policy_gets_the_arguments_of_its_parameters(policy):
    @retry(policy=policy)
    def fetch(tenant, url):
        raise OSError

    assert attempts(lambda: fetch("large", url="u")) == 4
    assert attempts(lambda: fetch("small", url="u")) == 2


def test_a_policy_gets_the_defaults_and_the_other_names_of_a_call():
    asked = []

    @retry(policy=lambda size, depth: asked.append((size, depth)) or FEW)
    def fetch(size=3, **options): ...

    fetch(depth=1)
    fetch(4, depth=2)
    assert asked == [(3, 1), (4, 2)]
    with pytest.raises(TypeError, match="depth"):
        fetch()


def test_parameters_with_defaults_alone_keep_them():
    """Such as those that bind a variable of a loop."""
    fetch = retry(policy=lambda tenant=MANY: tenant)(lambda tenant: failing())
    assert attempts(lambda: fetch("large")) == 4


def test_a_stream_may_have_the_policy_of_its_arguments():
    @retry(policy=lambda tenant: tenant, stream="restart")
    def rows(tenant):
        yield tenant.max_attempts
        raise OSError

    for policy in (FEW, MANY):
        stream = rows(policy)
        with pytest.raises(OSError):
            list(stream)
        assert stream.state.attempt == policy.max_attempts


def test_drivers_are_kept_for_the_last_policies_of_each_function():
    policies = [Policy(max_attempts=1 + n, schedule=[0] * 99) for n in range(70)]
    asked = []
    fetch = retry(policy=policies.__getitem__, name="fetch")
    fetch = retry(policy=lambda number: asked.append(1) or policies[number])(
        lambda number: current_state()._record.terms
    )
    first = fetch(0)
    assert fetch(0) is first
    fetch(1)
    assert fetch(0) is first
    for number in range(2, 70):
        fetch(number)
    assert fetch(0) is not first
    assert len(asked) == 73


def test_changes_are_made_once_for_each_policy():
    fetch = retry(policy=lambda policy: policy, name="fetch")(lambda policy: None)
    source = fetch.__retrykit__.source
    assert source.ask(policy=FEW) is source.ask(policy=FEW)
    assert source.ask(policy=MANY).name == "fetch"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nonsense": 3}, "nonsense is not a policy setting"),
        ({"max_attempts": 0}, "max_attempts must be an integer >= 1"),
    ],
)
def test_a_wrong_setting_is_an_error_where_the_function_is_decorated(changes, message):
    with pytest.raises(ConfigError, match=message):
        retry(policy=lambda: FEW, **changes)(failing)
    with pytest.raises(ConfigError, match=message):
        with_policy(retry(policy=lambda: FEW)(failing), **changes)


WITHOUT_CALL = {
    "loop": lambda: retrying(lambda tenant: FEW),
    "async loop": lambda: aretrying(lambda tenant: FEW),
    "policy of": lambda: policy_of(retry(policy=lambda x: FEW)(lambda x: x)),
}


@pytest.mark.parametrize("ask", WITHOUT_CALL.values(), ids=WITHOUT_CALL)
def test_a_policy_of_a_call_needs_one(ask):
    with pytest.raises(ConfigError, match="without parameters where no call has"):
        ask()


def test_a_parameter_that_the_function_lacks_is_told_where_it_is_decorated():
    with pytest.raises(ConfigError, match=r"failing also has, .*; it has no 'tenant'"):
        retry(policy=lambda tenant: FEW)(failing)


def test_arguments_that_the_function_does_not_take_are_its_own_error():
    fetch = retry(policy=lambda tenant: FEW)(lambda tenant: tenant)
    with pytest.raises(TypeError, match="tenant"):
        fetch()
