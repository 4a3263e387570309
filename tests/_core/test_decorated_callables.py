"""8. Decorators disappear: the features of each kind of callable are kept."""

import asyncio
import functools
import statistics

import pytest

from retrykit import Policy, aretry, current_state, retry

POLICY = Policy(schedule=[1, 2], on=OSError)


def test_a_cached_function_is_retried_until_it_succeeds(clock, flaky):
    body = flaky(OSError(), OSError(), "value")
    fetch = retry(POLICY)(functools.lru_cache(body))
    assert [fetch("a"), fetch("a"), len(body.calls)] == ["value", "value", 3]
    assert (fetch.cache_info().hits, fetch.cache_info().misses) == (1, 3)
    fetch.cache_clear()
    assert fetch.cache_info().currsize == 0
    assert clock.sleeps == [1.0, 2.0]


def test_a_cache_above_the_decorator_stores_the_final_result(clock, flaky):
    body = flaky(OSError(), OSError(), "value")
    fetch = functools.lru_cache(retry(POLICY)(body))
    assert [fetch("a"), fetch("a"), len(body.calls)] == ["value", "value", 3]
    assert (fetch.cache_info().hits, fetch.cache_info().misses) == (1, 1)
    assert clock.sleeps == [1.0, 2.0]


def test_the_getter_of_a_property_is_retried(clock, flaky):
    body = flaky(OSError(), OSError(), "value", OSError(), "later")

    class Client:
        @property
        @retry(POLICY)
        def value(self):
            """The value."""
            return self, body()

        @value.setter
        def value(self, _new):
            body.calls.clear()

    client = Client()
    assert client.value == (client, "value")
    assert (len(body.calls), clock.sleeps) == (3, [1.0, 2.0])
    client.value = "new"
    assert (client.value, len(body.calls)) == ((client, "later"), 2)
    assert Client.value.__doc__ == "The value."


def test_the_getter_of_a_cached_property_is_retried_and_cached(clock, flaky):
    body = flaky(OSError(), OSError(), "value")

    class Client:
        @functools.cached_property
        @retry(POLICY)
        def value(self):
            return self, body()

    client = Client()
    assert client.value == client.value == (client, "value")
    assert (len(body.calls), clock.sleeps) == (3, [1.0, 2.0])


def test_a_cached_method_is_retried_on_its_object(clock, flaky):
    body = flaky(OSError(), "value")

    class Client:
        @retry(POLICY)
        @functools.lru_cache  # noqa: B019  the class lives as long as the test
        def get(self, key):
            return self, key, body()

    client = Client()
    assert client.get("a") == (client, "a", "value")
    assert client.get("a") is client.get("a")
    assert (Client.get.cache_info().hits, len(body.calls)) == (2, 2)
    assert clock.sleeps == [1.0]


def test_a_decorated_singledispatch_accepts_implementations(clock, flaky):
    body = flaky(OSError(), OSError(), "a text")

    @retry(POLICY)
    @functools.singledispatch
    def describe(value):
        return f"any {value}"

    describe.register(str, body)
    assert [describe(5), describe("a"), len(body.calls)] == ["any 5", "a text", 3]
    assert describe.dispatch(int)(6) == "any 6"
    assert clock.sleeps == [1.0, 2.0]


def test_a_builtin_keeps_its_own_errors():
    assert retry(len)([1, 2]) == 2
    with pytest.raises(TypeError, match=r"len\(\) takes exactly one argument"):
        retry(on=OSError)(len)()


def test_a_function_of_another_module_is_unchanged(clock):
    before = vars(statistics.fmean).copy()
    assert retry(POLICY)(statistics.fmean)([1, 2]) == 1.5
    assert vars(statistics.fmean) == before
    assert clock.sleeps == []


def test_arguments_named_like_those_of_retrykit_reach_the_function():
    @retry(POLICY)
    def fetch(self, fn, policy, state, **kwargs):
        return self, fn, policy, state, kwargs

    call = fetch(self=1, fn=2, policy=3, state=4, schedule=5, args=6, call=7)
    assert call == (1, 2, 3, 4, {"schedule": 5, "args": 6, "call": 7})
    assert POLICY.call(fetch, 1, fn=2, policy=3, state=4) == (1, 2, 3, 4, {})
    assert POLICY.run(fetch, 1, fn=2, policy=3, state=4).value == (1, 2, 3, 4, {})


def test_arguments_named_like_those_of_retrykit_reach_the_coroutine_function():
    async def fetch(self, fn, policy, **kwargs):
        return self, fn, policy, kwargs

    call = functools.partial(aretry(POLICY)(fetch), self=1, fn=2, policy=3, state=4)
    assert asyncio.run(call()) == (1, 2, 3, {"state": 4})
    assert asyncio.run(POLICY.acall(fetch, 1, fn=2, policy=3)) == (1, 2, 3, {})
    assert asyncio.run(POLICY.arun(fetch, 1, fn=2, policy=3)).value == (1, 2, 3, {})


def test_missing_arguments_raise_the_functions_own_type_error(clock):
    @retry(POLICY)
    def fetch(url):
        return url

    with pytest.raises(TypeError, match=r"fetch\(\) missing 1 required positional"):
        fetch()
    assert clock.sleeps == []


@pytest.mark.parametrize("eager", [False, True], ids=["task", "future"])
def test_tasks_and_futures_are_retried_under_aretry(clock, flaky, eager):
    body = flaky(OSError(), OSError(), "value")

    async def main():
        loop = asyncio.get_running_loop()

        async def work():
            return body()

        def fetch():
            if not eager:
                return loop.create_task(work())
            future = loop.create_future()
            try:
                future.set_result(body())
            except OSError as error:
                future.set_exception(error)
            return future

        return await aretry(POLICY)(fetch)()

    assert asyncio.run(main()) == "value"
    assert (len(body.calls), clock.sleeps) == (3, [1.0, 2.0])


def test_stacked_decorators_retry_independently(clock):
    seen = []

    @retry(schedule=[5], on=OSError, nested="retry")
    @retry(schedule=[1], on=OSError)
    def fetch():
        seen.append(current_state().attempt)
        raise OSError("refused")

    with pytest.raises(OSError, match="refused"):
        fetch()
    assert (seen, clock.sleeps) == ([1, 2, 1, 2], [1.0, 5.0, 1.0])


def test_one_decorator_decorates_many_functions(clock, flaky):
    decorator = retry(POLICY)
    first = decorator(flaky(OSError(), "one"))
    second = decorator(flaky(OSError(), OSError(), "two"))
    assert (first(), second(), first()) == ("one", "two", "done")
    assert clock.sleeps == [1.0, 1.0, 2.0]


@pytest.mark.parametrize(
    "decorator",
    [retry, retry(), retry(None), retry(Policy()), retry(policy=Policy()), aretry],
    ids=["bare", "called", "None", "a policy", "a named policy", "aretry"],
)
def test_the_decorator_can_be_written_in_many_ways(clock, flaky, decorator):
    body = flaky(OSError(), OSError(), "value")

    @decorator
    async def fetch():
        return body()

    assert asyncio.run(fetch()) == "value"
    assert (len(body.calls), len(clock.sleeps)) == (3, 2)


def test_settings_beside_a_policy_do_not_change_the_policy(clock, flaky):
    body = flaky(*[OSError("refused")] * 9)
    with pytest.raises(OSError, match="refused"):
        retry(POLICY, max_attempts=2)(body)()
    assert (len(body.calls), clock.sleeps) == (2, [1.0])
    assert POLICY.max_attempts is None
