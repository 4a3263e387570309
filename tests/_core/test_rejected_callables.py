"""7. Nothing is silently not retried: callables that cannot be retried are rejected."""

import contextlib
import functools

import pytest

from retrykit import (
    ConfigError,
    Policy,
    RetryState,
    aretry,
    aretrying,
    resume,
    retry,
    retrying,
    schedules as s,
    with_policy,
)
from retrykit._core.stream_modes import STREAM_MODES

POLICY = Policy(schedule=[1, 2])
STATE = RetryState("fetch", seed=7, epoch=0.0)


async def is_busy(_answer):
    return True


def plain():
    return "value"


def rows():
    yield 1


async def pages():
    yield 1


class Rows:
    def __call__(self):
        yield 1

    def get(self):
        yield 1

    @classmethod
    def create(cls):
        yield 1

    def __repr__(self):
        return "Rows()"


class Pages:
    async def __call__(self):
        yield 1

    def __repr__(self):
        return "Pages()"


GENERATORS = {
    "generator function": rows,
    "async generator function": pages,
    "lambda": lambda: (yield 1),
    "partial": functools.partial(rows),
    "partial of a partial": functools.partial(functools.partial(pages)),
    "callable object": Rows(),
    "partial of a callable object": functools.partial(Rows()),
    "async callable object": Pages(),
    "method": Rows.get,
    "bound method": Rows().get,
    "bound classmethod": Rows.create,
}
DECORATORS = {
    "retry": retry,
    "retry with a policy": retry(POLICY),
    "aretry": aretry,
    "with_policy": with_policy,
    "resume": lambda fn: resume(fn, STATE),
}


@pytest.mark.parametrize("decorate", DECORATORS.values(), ids=DECORATORS)
@pytest.mark.parametrize("kind", GENERATORS)
def test_generator_functions_are_rejected(kind, decorate):
    fn = GENERATORS[kind]
    with pytest.raises(ConfigError) as caught:
        decorate(fn)
    # For a method, the message may name its function.
    inner = getattr(fn, "__func__", fn)
    assert caught.value.message in {generator_error(fn), generator_error(inner)}


@pytest.mark.parametrize("binding", [staticmethod, classmethod])
@pytest.mark.parametrize("fn", [rows, pages])
def test_generator_functions_are_rejected_in_static_and_class_methods(binding, fn):
    with pytest.raises(ConfigError) as caught:
        retry(binding(fn))
    assert caught.value.message == generator_error(fn)


def generator_error(fn, used="iterated"):
    modes = "" if used == "entered" else f"give retry stream={STREAM_MODES}; or "
    return (
        "fn must be a function that runs when it is called, not a generator function, "
        f"got {fn!r}; its errors are raised where it is {used}: {modes}retry that code,"
        " or write a block, for attempt in retrying(...), in it"
    )


class Page:
    title = property(lambda _self: "title")
    cached = functools.cached_property(lambda _self: "cached")
    overloaded = functools.singledispatchmethod(lambda _self, _key: 1)
    partial = functools.partialmethod(print)


A_CLASS = "a function", "; decorate a function that creates the object"
A_PROPERTY = "a function", "; put the decorator below the property"
NO_CALLABLE = "a function or another callable", ""
NOT_FUNCTIONS = {
    "class": (Page, *A_CLASS),
    "built-in class": (int, *A_CLASS),
    "property": (vars(Page)["title"], *A_PROPERTY),
    "cached_property": (vars(Page)["cached"], *A_PROPERTY),
    "singledispatchmethod": (vars(Page)["overloaded"], *NO_CALLABLE),
    "partialmethod": (vars(Page)["partial"], *NO_CALLABLE),
    "object": (Page(), *NO_CALLABLE),
    "number": (5, *NO_CALLABLE),
    "text": ("fetch", *NO_CALLABLE),
    "None": (None, *NO_CALLABLE),
}


@pytest.mark.parametrize("decorate", [retry(POLICY), aretry()], ids=["retry", "aretry"])
@pytest.mark.parametrize("kind", NOT_FUNCTIONS)
def test_objects_that_are_not_functions_are_rejected(kind, decorate):
    fn, rule, suggestion = NOT_FUNCTIONS[kind]
    with pytest.raises(ConfigError) as caught:
        decorate(fn)
    assert caught.value.message == f"fn must be {rule}, got {fn!r}{suggestion}"


@pytest.mark.parametrize("kind", ["class", "property", "cached_property"])
def test_objects_that_are_not_functions_are_rejected_without_parentheses(kind):
    fn, rule, suggestion = NOT_FUNCTIONS[kind]
    with pytest.raises(ConfigError) as caught:
        retry(fn)
    assert caught.value.message == f"fn must be {rule}, got {fn!r}{suggestion}"


NOT_POLICIES = {
    "list": ([1, 2], "schedule=[1, 2]"),
    "float": (0.5, None),
    "text": ("5s", "max_elapsed='5s'"),
    "schedule": (s.constant(1), "schedule=constant(1.0)"),
    "dict": ({}, None),
    "nothing": ((), None),
    "False": (False, None),
    "int": (5, "max_attempts=5"),
    "type": (OSError, "on=OSError"),
    "types": ((OSError, KeyError), "on=(OSError, KeyError)"),
    "the Policy class": (Policy, "Policy()"),
}


@pytest.mark.parametrize("kind", NOT_POLICIES)
@pytest.mark.parametrize("decorator", [retry, aretry])
def test_an_invalid_policy_is_rejected_with_a_suggestion(decorator, kind):
    policy, meant = NOT_POLICIES[kind]
    with pytest.raises(ConfigError) as caught:
        decorator(policy)
    name = decorator.__name__
    example = f"name the setting, as in {name}(max_attempts=...)"
    suggestion = example if meant is None else f"write {name}({meant})"
    assert (
        caught.value.message == f"policy must be a Policy, got {policy!r}; {suggestion}"
    )


def test_a_function_beside_settings_is_rejected():
    with pytest.raises(ConfigError) as caught:
        retry(plain, max_attempts=2)
    assert caught.value.message == (
        f"policy must be a Policy beside other settings, got {plain!r}; "
        "write retry(...)(fn), or @retry(...) above it"
    )


@pytest.mark.parametrize("call", [POLICY.call, POLICY.run], ids=["call", "run"])
@pytest.mark.parametrize(
    "fn", [is_busy, functools.partial(is_busy)], ids=["function", "partial"]
)
def test_call_and_run_reject_coroutine_functions(call, fn):
    with pytest.raises(ConfigError) as caught:
        call(fn)
    assert caught.value.message == (
        f"fn must be a function that is not async, got {fn!r}; "
        "use acall or arun, or decorate it with retry or aretry"
    )


SETTINGS = {
    "retry": retry,
    "aretry": aretry,
    "with_policy": functools.partial(with_policy, print),
    "resume": functools.partial(resume, print, STATE),
    "retrying": retrying,
    "aretrying": aretrying,
    "Policy": Policy,
    "replace": Policy().replace,
}
UNKNOWN = {
    "max_attemps": "did you mean max_attempts?",
    "max_elapse": "did you mean max_elapsed?",
    "shedule": "did you mean schedule?",
    "observer": "did you mean observers?",
    "giveup_on": "did you mean give_up_on?",
    "on_results": "did you mean on_result?",
    "attempts": "write max_attempts, which includes the first attempt",
    "hints": "did you mean hint?",
    "zzz": "the settings are schedule, max_attempts, max_elapsed, limits, deadline, "
    "on, give_up_on, on_result, exception_groups, rules, hint, hint_cap, on_long_hint, "
    "hint_jitter, budget, admission, on_refused, hedge, attempt_timeout, nested, "
    "raises, fallback, stop_event, sleep, redact, keep_tracebacks, max_failures, seed, "
    "observers, name",
}


@pytest.mark.parametrize("form", SETTINGS)
def test_an_unknown_setting_is_rejected_everywhere(form):
    with pytest.raises(ConfigError, match=r"^attempts is not a policy setting"):
        SETTINGS[form](attempts=3)


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_setting_is_rejected_with_a_suggestion(name):
    with pytest.raises(ConfigError) as caught:
        Policy(**{name: 3})
    assert caught.value.message == (
        f"{name} is not a policy setting, got 3; {UNKNOWN[name]}"
    )


class AsyncPredicate:
    async def __call__(self, _answer):
        return True


FORMS = {
    "retry": lambda policy: retry(policy)(plain),
    "with_policy": lambda policy: with_policy(plain, policy),
    "resume": lambda policy: resume(plain, STATE, policy),
    "call": lambda policy: policy.call(plain),
    "run": lambda policy: policy.run(plain),
    "retrying": retrying,
    "aretrying": aretrying,
}


@pytest.mark.parametrize("setting", ["on", "give_up_on", "on_result"])
@pytest.mark.parametrize("form", FORMS)
def test_sync_calls_reject_async_predicates(form, setting):
    with pytest.raises(ConfigError) as caught:
        FORMS[form](Policy(**{setting: is_busy}))
    suggestion = "async functions need aretry"
    if form in {"retrying", "aretrying"}:
        suggestion = "put the block into a function under aretry"
    assert caught.value.message == (
        f"{setting} must be a sync function where nothing can await it, "
        f"got {is_busy!r}; {suggestion}"
    )


def test_sync_calls_reject_async_predicate_objects():
    with pytest.raises(ConfigError, match="async functions need aretry"):
        retry(on=AsyncPredicate())(plain)


@pytest.mark.parametrize(
    "manager", [contextlib.contextmanager, contextlib.asynccontextmanager]
)
def test_context_manager_functions_are_rejected(manager):
    def opened():
        yield

    async def aopened():
        yield

    body = opened if manager is contextlib.contextmanager else aopened
    with pytest.raises(ConfigError) as caught:
        retry(manager(body))
    assert caught.value.message.endswith(
        generator_error(body, "entered").partition("; ")[2]
    )
