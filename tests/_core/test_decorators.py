"""8. Decorators disappear: every kind of callable is retried."""

import functools
import operator

import pytest

from retrykit import ConfigError, retry
from tests._support.function_variants import (
    POLICY,
    UNDETECTED_VARIANTS,
    VARIANTS,
    as_coroutine_function,
    fails_twice,
    passthrough,
)


def wrapping(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs)

    return wrapper


def a_function(decorate, fetch):
    return decorate(fetch), ()


def a_partial(decorate, fetch):
    return decorate(functools.partial(fetch, "first")), ("first",)


def a_partial_of_a_partial(decorate, fetch):
    return decorate(functools.partial(functools.partial(fetch, "1"), "2")), ("1", "2")


def a_partial_of_the_decorated(decorate, fetch):
    return functools.partial(decorate(fetch), "first"), ("first",)


def a_callable_object(decorate, fetch):
    class Fetcher:
        __call__ = fetch

    fetcher = Fetcher()
    return decorate(fetcher), (fetcher,)


def a_partial_of_a_callable_object(decorate, fetch):
    class Fetcher:
        __call__ = fetch

    fetcher = Fetcher()
    return decorate(functools.partial(fetcher, "first")), (fetcher, "first")


def an_object_with_a_decorated_call(decorate, fetch):
    class Fetcher:
        __call__ = decorate(fetch)

    fetcher = Fetcher()
    return fetcher, (fetcher,)


def a_bound_method_decorated_later(decorate, fetch):
    class Client:
        get = fetch

    client = Client()
    return decorate(client.get), (client,)


def a_bound_classmethod_decorated_later(decorate, fetch):
    class Client:
        get = classmethod(fetch)

    return decorate(Client.get), (Client,)


def wrapt_below(decorate, fetch):
    return decorate(passthrough(fetch)), ()


def wrapt_above(decorate, fetch):
    return passthrough(decorate(fetch)), ()


def wraps_above(decorate, fetch):
    return wrapping(decorate(fetch)), ()


def singledispatch_above(decorate, fetch):
    return functools.singledispatch(decorate(fetch)), ()


def an_implementation_of_singledispatch(decorate, fetch):
    @functools.singledispatch
    def describe(_value, **_options):
        raise NotImplementedError

    describe.register(str, decorate(fetch))
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


def a_lambda(decorate, fetch):
    return decorate(lambda *args, **kw: fetch(*args, **kw)), ()  # noqa: PLW0108  a lambda


def a_builtin(decorate, fetch):
    return functools.partial(decorate(operator.call), fetch), ()


def a_partial_of_a_builtin(decorate, fetch):
    return decorate(functools.partial(operator.call, fetch)), ()


def wraps_below(decorate, fetch):
    return decorate(wrapping(fetch)), ()


def singledispatch_below(decorate, fetch):
    return decorate(functools.singledispatch(fetch)), ()


UNDETECTED_FORMS = [
    a_lambda,
    a_builtin,
    a_partial_of_a_builtin,
    wraps_below,
    singledispatch_below,
]


def id_of(form):
    return form.__name__.replace("_", " ")


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("form", FORMS, ids=id_of)
def test_is_called_with_its_arguments_until_it_succeeds(clock, form, variant):
    as_kind, decorate, run = VARIANTS[variant]
    seen = []
    fetch, first = form(decorate, as_kind(fails_twice(seen)))
    assert run(functools.partial(fetch, "a", key="b")) == "value"
    assert seen == [((*first, "a"), {"key": "b"})] * 3
    assert clock.sleeps == [1.0, 2.0]


@pytest.mark.parametrize("variant", UNDETECTED_VARIANTS)
@pytest.mark.parametrize("form", UNDETECTED_FORMS, ids=id_of)
def test_is_retried_if_it_does_not_look_like_a_coroutine_function(clock, form, variant):
    as_kind, decorate, run = UNDETECTED_VARIANTS[variant]
    seen = []
    fetch, first = form(decorate, as_kind(fails_twice(seen)))
    assert run(functools.partial(fetch, "a", key="b")) == "value"
    assert seen == [((*first, "a"), {"key": "b"})] * 3
    assert clock.sleeps == [1.0, 2.0]


@pytest.mark.parametrize("form", UNDETECTED_FORMS, ids=id_of)
def test_an_awaitable_under_retry_is_rejected(clock, form):
    seen = []
    fetch, _ = form(retry(POLICY), as_coroutine_function(fails_twice(seen)))
    with pytest.raises(ConfigError, match="decorate it with aretry"):
        fetch("a", key="b")
    assert (seen, clock.sleeps) == ([], [])
