"""The same function under another policy: `with_policy`, `policy_of`, `resume`."""

import asyncio
import functools
import inspect

import pytest

from retrykit import (
    ConfigError,
    Policy,
    RetryState,
    aretry,
    current_state,
    policy_of,
    resume,
    retry,
    with_policy,
)
from tests._support.function_variants import passthrough

POLICY = Policy(schedule=[1, 2, 3, 4], on=OSError)
OTHER = Policy(schedule=[9, 9], on=OSError)
STATE = RetryState("get", seed=7, epoch=0.0, attempt=3)


def wrapping(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs)

    return wrapper


class Client:
    """Every kind of method; each fails every time."""

    def __init__(self):
        self.seen = []

    def fail(self, key):
        self.seen.append(key)
        raise OSError("refused")

    get = retry(POLICY)(fail)
    under_wraps = wrapping(get)
    under_wrapt = passthrough(get)
    over_wrapt = retry(POLICY)(passthrough(fail))

    @retry(POLICY)
    async def aget(self, key):
        self.fail(key)

    @aretry(POLICY)
    def task(self, key):
        return asyncio.create_task(self.later(key))

    async def later(self, key):
        self.fail(key)

    @retry(POLICY)
    @classmethod
    def made(cls, client):
        client.fail(cls)

    @classmethod
    @retry(POLICY)
    def also_made(cls, client):
        client.fail(cls)

    @retry(POLICY)
    @staticmethod
    def given(client):
        client.fail(None)

    quick_made = with_policy(made, max_attempts=2)
    quick_given = with_policy(given, max_attempts=2)

    @retry(POLICY)
    def __call__(self, key):
        self.fail(key)


def fail_with(fn, *args):
    """Call a function that fails, and await its result if it is awaitable."""
    with pytest.raises(OSError, match="refused"):
        asyncio.run(awaited(fn, args))


async def awaited(fn, args):
    result = fn(*args)
    return await result if inspect.isawaitable(result) else result


FOUND = {
    "a function": lambda _: retry(POLICY)(len),
    "a bound method": lambda client: client.get,
    "a method of the class": lambda _: Client.get,
    "a coroutine method": lambda client: client.aget,
    "a method under functools.wraps": lambda client: client.under_wraps,
    "a method under wrapt": lambda client: client.under_wrapt,
    "a method over wrapt": lambda client: client.over_wrapt,
    "a classmethod": lambda _: Client.made,
    "a decorated function in a classmethod": lambda _: Client.also_made,
    "a classmethod itself": lambda _: vars(Client)["made"],
    "a staticmethod": lambda client: client.given,
    "a staticmethod itself": lambda _: vars(Client)["given"],
    "a partial of it": lambda client: functools.partial(client.get, "a"),
    "a partial": lambda client: retry(POLICY)(functools.partial(client.fail, "a")),
    "a cached one": lambda _: functools.lru_cache(retry(POLICY)(len)),
    "a callable object": retry(POLICY),
    "a cached property": lambda _: functools.cached_property(Client.get),
    "a singledispatch function": lambda _: functools.singledispatch(Client.get),
}


@pytest.mark.parametrize("kind", FOUND)
def test_policy_of_returns_the_policy_of_every_decorated_callable(kind):
    assert policy_of(FOUND[kind](Client())) == POLICY


@pytest.mark.parametrize(
    "fn",
    [print, Client.fail, Client().fail, Client, functools.partial(print), None],
    ids=["builtin", "function", "bound method", "class", "partial", "None"],
)
def test_policy_of_returns_none_for_other_callables(fn):
    with pytest.raises(ConfigError) as caught:
        policy_of(fn)
    assert caught.value.message == (
        f"fn must be decorated with retry or aretry, got {fn!r}"
    )


BOUND = ["get", "over_wrapt", "aget", "task", "fail"]


@pytest.mark.parametrize("name", BOUND)
def test_bound_methods_stay_bound_under_another_policy(clock, name):
    client = Client()
    quick = with_policy(getattr(client, name), OTHER)
    fail_with(quick, "a")
    assert (client.seen, clock.sleeps) == (["a"] * 3, [9.0, 9.0])
    assert inspect.ismethod(quick)
    assert quick.__self__ is client
    assert policy_of(quick) == OTHER


@pytest.mark.parametrize("name", BOUND[:-1])
def test_with_policy_does_not_change_the_method_itself(clock, name):
    client = Client()
    with_policy(getattr(client, name), OTHER)
    fail_with(getattr(client, name), "a")
    assert (client.seen, clock.sleeps) == (["a"] * 5, [1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize("name", ["made", "also_made"])
@pytest.mark.parametrize("owner", [Client, type("Special", (Client,), {})])
def test_classmethods_keep_their_class_under_another_policy(clock, name, owner):
    client = Client()
    fail_with(with_policy(getattr(owner, name), OTHER), client)
    fail_with(with_policy(getattr(owner(), name), OTHER), client)
    assert client.seen == [owner] * 6
    assert clock.sleeps == [9.0, 9.0] * 2


def test_staticmethods_stay_unbound_under_another_policy(clock):
    client = Client()
    fail_with(with_policy(Client.given, OTHER), client)
    fail_with(with_policy(client.given, OTHER), client)
    assert client.seen == [None] * 6
    assert clock.sleeps == [9.0, 9.0] * 2


@pytest.mark.parametrize("name", ["quick_made", "quick_given"])
def test_class_and_static_methods_can_be_changed_in_the_class_body(clock, name):
    client = Client()
    fail_with(getattr(client, name), client)
    assert (len(client.seen), clock.sleeps) == (2, [1.0])
    assert policy_of(getattr(client, name)) == POLICY.replace(max_attempts=2)


def test_the_policy_of_a_decorated_bound_method_can_be_changed(clock):
    client = Client()
    get = retry(POLICY)(client.fail)
    fail_with(with_policy(get, max_attempts=2), "a")
    fail_with(resume(get, STATE), "b")
    assert client.seen == ["a"] * 2 + ["b"] * 3
    assert clock.sleeps == [1.0, 3.0, 4.0]


COVERED = {
    "functools.wraps": lambda: Client().under_wraps,
    "wrapt": lambda: Client().under_wrapt,
    "wrapt over a classmethod": lambda: passthrough(vars(Client)["made"]),
    "lru_cache": lambda: functools.lru_cache(Client.get),
    "partial": lambda: functools.partial(Client().get, "a"),
}


@pytest.mark.parametrize(
    "arguments", [(with_policy,), (resume, STATE)], ids=["with_policy", "resume"]
)
@pytest.mark.parametrize("cover", COVERED)
def test_a_callable_under_another_decorator_is_rejected(cover, arguments):
    """It would be retried twice, or lose the other decorator."""
    change, *state = arguments
    with pytest.raises(ConfigError):
        change(COVERED[cover](), *state, max_attempts=2)


@pytest.mark.parametrize(
    ("args", "changes", "sleeps"),
    [
        ((), {"max_attempts": 2}, [1.0]),
        ((OTHER,), {}, [9.0, 9.0]),
        ((OTHER,), {"max_attempts": 2}, [9.0]),
        ((), {}, [1.0, 2.0, 3.0, 4.0]),
        ((None,), {"schedule": [5]}, [5.0]),
    ],
    ids=["changes", "policy", "policy and changes", "nothing", "None and changes"],
)
def test_settings_change_the_functions_own_policy(clock, args, changes, sleeps):
    client = Client()
    quick = with_policy(client.get, *args, **changes)
    fail_with(quick, "a")
    assert (clock.sleeps, len(client.seen)) == (sleeps, len(sleeps) + 1)
    assert policy_of(quick) == (OTHER if OTHER in args else POLICY).replace(**changes)
    assert policy_of(client.get) == POLICY


def test_the_last_policy_wins(clock):
    client = Client()
    slow = with_policy(with_policy(client.get, OTHER), schedule=[7, 7, 7])
    fail_with(slow, "a")
    assert (len(client.seen), clock.sleeps) == (4, [7.0, 7.0, 7.0])


def test_a_function_that_is_not_decorated_gets_the_default_policy(clock):
    client = Client()
    quick = with_policy(client.fail, max_attempts=2)
    assert policy_of(quick) == Policy(max_attempts=2)
    fail_with(quick, "a")
    assert (len(client.seen), len(clock.sleeps)) == (2, 1)


def test_partials_and_objects_keep_their_type_under_another_policy(clock):
    client = Client()
    for fn in (functools.partial(client.fail, "a"), functools.partial(client, "a")):
        quick = with_policy(retry(POLICY)(fn), OTHER)
        assert isinstance(quick, functools.partial)
        assert (quick.func, quick.args) == (fn.func, ("a",))
    fail_with(with_policy(retry(POLICY)(functools.partial(client.fail, "a")), OTHER))
    assert (client.seen, clock.sleeps) == (["a"] * 3, [9.0, 9.0])


@pytest.mark.parametrize("name", BOUND[:-1])
def test_resume_calls_a_bound_method_on_its_object(clock, name):
    client = Client()
    fail_with(resume(getattr(client, name), STATE), "a")
    assert (client.seen, clock.sleeps) == (["a"] * 3, [3.0, 4.0])


def test_resume_accepts_an_undecorated_function_with_a_policy(clock):
    def attempt(*args, **kwargs):
        if current_state().attempt == 3:
            raise OSError
        return current_state().attempt, args, kwargs

    class Plain:
        get = attempt

    plain = Plain()
    assert resume(plain.get, STATE, POLICY)("a", k=1) == (4, (plain, "a"), {"k": 1})
    assert resume(attempt, STATE, schedule=[0, 0, 5])("a") == (4, ("a",), {})
    assert clock.sleeps == [3.0, 5.0]


def test_resume_calls_class_and_static_methods(clock):
    client = Client()
    fail_with(resume(Client.made, STATE), client)
    fail_with(resume(client.given, STATE), client)
    assert client.seen == [Client] * 3 + [None] * 3
    assert clock.sleeps == [3.0, 4.0] * 2


class Remote:
    """A proxy of a remote object, which has every attribute."""

    def __getattr__(self, name):
        return Remote()

    def __call__(self, *args):
        raise AssertionError(args)


def test_an_object_with_every_attribute_has_no_policy():
    with pytest.raises(ConfigError, match="decorated with retry or aretry"):
        policy_of(Remote())


@pytest.mark.parametrize("decorator", [retry, aretry])
def test_an_object_with_every_attribute_is_decorated_without_a_call(decorator):
    assert policy_of(decorator(max_attempts=2)(Remote())).max_attempts == 2
