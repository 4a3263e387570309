"""8. Decorators disappear: whatever is called is called as before, and retried."""

import functools
import operator

import pytest

from retrykit import ConfigError, retry
from tests._support.ways import (
    HIDDEN_WAYS,
    POLICY,
    WAYS,
    awaited,
    failing_twice,
    passing,
)


def wrapping(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs)

    return wrapper


def a_function(retried, fetch):
    return retried(fetch), ()


def a_partial(retried, fetch):
    return retried(functools.partial(fetch, "first")), ("first",)


def a_partial_of_a_partial(retried, fetch):
    return retried(functools.partial(functools.partial(fetch, "1"), "2")), ("1", "2")


def a_partial_of_the_decorated(retried, fetch):
    return functools.partial(retried(fetch), "first"), ("first",)


def a_callable_object(retried, fetch):
    class Fetcher:
        __call__ = fetch

    fetcher = Fetcher()
    return retried(fetcher), (fetcher,)


def a_partial_of_a_callable_object(retried, fetch):
    class Fetcher:
        __call__ = fetch

    fetcher = Fetcher()
    return retried(functools.partial(fetcher, "first")), (fetcher, "first")


def an_object_with_a_decorated_call(retried, fetch):
    class Fetcher:
        __call__ = retried(fetch)

    fetcher = Fetcher()
    return fetcher, (fetcher,)


def a_bound_method_decorated_later(retried, fetch):
    class Client:
        get = fetch

    client = Client()
    return retried(client.get), (client,)


def a_bound_classmethod_decorated_later(retried, fetch):
    class Client:
        get = classmethod(fetch)

    return retried(Client.get), (Client,)


def wrapt_below(retried, fetch):
    return retried(passing(fetch)), ()


def wrapt_above(retried, fetch):
    return passing(retried(fetch)), ()


def wraps_above(retried, fetch):
    return wrapping(retried(fetch)), ()


def singledispatch_above(retried, fetch):
    return functools.singledispatch(retried(fetch)), ()


def an_implementation_of_singledispatch(retried, fetch):
    @functools.singledispatch
    def describe(_value, **_options):
        raise NotImplementedError

    describe.register(str, retried(fetch))
    return describe, ()


FORMS = [
    a_function,
    a_partial,
    a_partial_of_a_partial,
    a_partial_of_the_decorated,
    a_callable_object,
    a_partial_of_a_callable_object,
    an_object_with_a_decorated_call,
    a_bound_method_decorated_later,
    a_bound_classmethod_decorated_later,
    wrapt_below,
    wrapt_above,
    wraps_above,
    singledispatch_above,
    an_implementation_of_singledispatch,
]


def a_lambda(retried, fetch):
    return retried(lambda *args, **kw: fetch(*args, **kw)), ()  # noqa: PLW0108  a lambda


def a_builtin(retried, fetch):
    return functools.partial(retried(operator.call), fetch), ()


def a_partial_of_a_builtin(retried, fetch):
    return retried(functools.partial(operator.call, fetch)), ()


def wraps_below(retried, fetch):
    return retried(wrapping(fetch)), ()


def singledispatch_below(retried, fetch):
    return retried(functools.singledispatch(fetch)), ()


HIDDEN_FORMS = [
    a_lambda,
    a_builtin,
    a_partial_of_a_builtin,
    wraps_below,
    singledispatch_below,
]


def name(form):
    return form.__name__.replace("_", " ")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", FORMS, ids=name)
def test_is_called_as_before_until_it_succeeds(clock, form, way):
    colour, retried, run = WAYS[way]
    seen = []
    fetch, first = form(retried, colour(failing_twice(seen)))
    assert run(functools.partial(fetch, "a", key="b")) == "value"
    assert seen == [((*first, "a"), {"key": "b"})] * 3
    assert clock.sleeps == [1.0, 2.0]


@pytest.mark.parametrize("way", HIDDEN_WAYS)
@pytest.mark.parametrize("form", HIDDEN_FORMS, ids=name)
def test_is_retried_although_its_colour_cannot_be_seen(clock, form, way):
    colour, retried, run = HIDDEN_WAYS[way]
    seen = []
    fetch, first = form(retried, colour(failing_twice(seen)))
    assert run(functools.partial(fetch, "a", key="b")) == "value"
    assert seen == [((*first, "a"), {"key": "b"})] * 3
    assert clock.sleeps == [1.0, 2.0]


@pytest.mark.parametrize("form", HIDDEN_FORMS, ids=name)
def test_an_awaitable_under_retry_is_refused_and_not_returned(clock, form):
    seen = []
    fetch, _ = form(retry(POLICY), awaited(failing_twice(seen)))
    with pytest.raises(ConfigError, match="decorate it with aretry"):
        fetch("a", key="b")
    assert (seen, clock.sleeps) == ([], [])
