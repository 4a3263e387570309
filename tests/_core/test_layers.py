"""The layers that retry around a call, and the warning that they multiply."""

import asyncio
import functools
import logging
import sys
from contextlib import suppress
from types import FunctionType, ModuleType, SimpleNamespace
from typing import ClassVar

import pytest

from retrykit import Layers, Policy, Rule, aretry, layers, retry, retrying
from retrykit._core import ineffective
from retrykit._core.drivers import driver_factory
from retrykit._own_retries import _KNOWN, OWN_RETRIES, OwnRetries
from retrykit.errors import ConfigError
from retrykit.schedules import constant


class BaseClient:
    """As the clients that one generator makes for several services."""

    def __init__(self, max_retries=2):
        self.max_retries = max_retries

    def with_options(self, *, max_retries):
        return type(self)(max_retries)

    def ask(self):
        raise OSError


BaseClient.__module__ = "openai._base_client"


class OpenAI(BaseClient):
    """A client."""


OpenAI.__module__ = "openai"


@pytest.fixture(autouse=True)
def _is_loaded(monkeypatch):
    monkeypatch.setattr(ineffective, "modules", {"openai": ModuleType("openai")})


@pytest.fixture
def warnings(caplog):
    caplog.set_level(logging.WARNING, "retrykit")
    ineffective.warned.clear()
    ineffective.searched.clear()

    def found():
        texts = [each.getMessage() for each in caplog.records]
        return [text for text in texts if "request" in text]

    return found


def warning(name, attempts=3, requests=3):
    return (
        f"{name}: openai.OpenAI makes up to {requests} requests in each of {attempts} "
        f"attempts: {attempts} x {requests} = {attempts * requests}; "
        "openai.OpenAI(max_retries=0) makes one"
    )


THREE = Policy(schedule=[0, 0], name="fetch")


def fail(*_args, **_named):
    raise OSError


def exhaust(function, *args, **named):
    with pytest.raises(OSError):
        function(*args, **named)


client = OpenAI()


def names_a_global():
    return client.ask()


def decorated():
    @functools.wraps(names_a_global)
    def inner():
        raise OSError

    return inner


def with_a_closure():
    own = OpenAI()

    def fetch():
        return own.ask()

    return fetch


class Shop:
    """Has a client, and a method that fails."""

    def __init__(self):
        self.client = OpenAI()

    def fetch(self):
        raise OSError


DECORATED = {
    "an argument": lambda: functools.partial(THREE.call, fail, OpenAI()),
    "a named argument": lambda: functools.partial(THREE.call, fail, by=OpenAI()),
    "a global variable": lambda: functools.partial(THREE.call, names_a_global),
    "an outer variable": lambda: functools.partial(THREE.call, with_a_closure()),
    "the object of a method": lambda: functools.partial(THREE.call, OpenAI().ask),
    "an attribute": lambda: functools.partial(THREE.call, Shop().fetch),
    "self": lambda: functools.partial(THREE.call, Shop.fetch, Shop()),
    "another decorator": lambda: retry(THREE)(decorated()),
}


@pytest.mark.parametrize("make", DECORATED.values(), ids=DECORATED)
def test_the_first_failure_warns_of_a_client_that_retries_by_itself(make, warnings):
    call = make()
    exhaust(call)
    exhaust(call)
    assert warnings() == [warning("fetch")]


def made_inside():
    return OpenAI().ask()


def call_it(function):
    return function()


class Resource:
    """As the part of a client for one kind of request."""

    def __init__(self):
        self._client = OpenAI()

    def create(self):
        raise OSError


Resource.__module__ = "openai.resources"


def raised_from_another():
    try:
        OpenAI().ask()
    except OSError as error:
        raise ConnectionError from error


RAISED_IN = {
    "a client made in the function": made_inside,
    "a client made by a helper": lambda: [*map(call_it, [made_inside])],
    "a part of a client": lambda: Resource().create(),
    "the cause of another error": raised_from_another,
}


@pytest.mark.parametrize("function", RAISED_IN.values(), ids=RAISED_IN)
def test_a_client_is_found_where_the_error_was_raised(function, warnings):
    exhaust(THREE.call, function)
    exhaust(THREE.call, function)
    assert warnings() == [warning("fetch")]


def test_a_client_of_a_coroutine_is_found_where_the_error_was_raised(warnings):
    @aretry(THREE.replace(attempt_timeout=60))
    async def fetch():
        await asyncio.sleep(0)
        return made_inside()

    with pytest.raises(OSError):
        asyncio.run(fetch())
    assert warnings() == [warning("fetch")]


def without_retries():
    return client.with_options(max_retries=0).ask()


def named_as(module, function):
    """Return a function as if it were in a module."""
    return FunctionType(function.__code__, globals() | {"__name__": module})


class PoolManager:
    """As that of urllib3, to which each request may bring its own retries."""

    connection_pool_kw: ClassVar = {"retries": 9}

    def urlopen(self):
        raise OSError


PoolManager.__module__ = "urllib3.poolmanager"


def deep(frames):
    return deep(frames - 1) if frames else made_inside()


def of_an_earlier_error():
    error = OSError()
    for _ in range(9):
        error, cause = OSError(), error
        error.__cause__ = cause
    raise error


SILENT = {
    "a copy of a client that has no retries": without_retries,
    "a retried function, which has looked by itself": lambda: THREE.replace(
        max_attempts=1
    ).call(made_inside),
    "a client of an integration": named_as("retrykit.integrations.x", made_inside),
    "an attribute of another package": lambda: Shop().fetch(),
    "a pool of urllib3": lambda: PoolManager().urlopen(),
    "more frames than any SDK has": lambda: deep(200),
    "more causes than any SDK has": of_an_earlier_error,
    "litellm, which is not imported": named_as("litellm.main", fail),
}


@pytest.mark.parametrize("function", SILENT.values(), ids=SILENT)
def test_no_client_is_found_where_the_error_was_raised(function, warnings):
    exhaust(THREE.call, functools.partial(call_it, function))
    assert warnings() == []


def test_litellm_is_found_before_the_client_that_it_makes(warnings, monkeypatch):
    module = ModuleType("litellm")
    module.DEFAULT_MAX_RETRIES, module.num_retries = 2, 1
    monkeypatch.setitem(sys.modules, "litellm", module)
    exhaust(THREE.call, named_as("litellm.main", made_inside))
    [text] = warnings()
    assert text.startswith("fetch: litellm makes up to 4 requests")


class Retry:
    """As the retries of Google Cloud's methods, which only time limits."""

    def __init__(self, timeout=120.0):
        self._timeout = timeout

    def __call__(self, function):
        def retry_wrapped():
            assert self
            return function()

        return retry_wrapped


Retry.__module__, Retry.__qualname__ = "google.api_core.retry.retry_base", "_BaseRetry"


class Bucket:
    """Has the retries of its methods as a default."""

    def __init__(self):
        self._retry = Retry()

    def load(self, retry=None):
        return retry(fail)() if retry else fail()


Bucket.__module__ = "google.cloud.storage.bucket"


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda: Bucket().load(Retry()), "storage.bucket.Bucket%s for up to 2 min in"),
        (lambda: Bucket().load(Retry(None)), "storage.bucket.Bucket%s without a limit"),
        (Retry(9)(fail), "api_core.retry.retry_base%s for up to 9 s in each of 3"),
        (lambda: Bucket().load(), None),
    ],
    ids=["two minutes", "without a limit", "by itself", "retry=None"],
)
def test_the_retries_of_a_method_of_google_cloud_are_found(
    function, expected, warnings, caplog
):
    exhaust(THREE.call, function)
    [*texts] = warnings()
    if expected is None:
        assert texts == []
    else:
        text, by_itself = texts[0], " retries by itself"
        assert expected % by_itself in text.replace("google.", "").replace("cloud.", "")
        assert text.endswith("attempts; retry=None makes one request")


def test_the_default_retries_of_a_method_are_not_those_of_each_call(warnings):
    exhaust(THREE.call, fail, Retry(), Bucket())
    assert warnings() == []


class MongoClient:
    """As that of PyMongo."""

    def __init__(self, timeout):
        self.options = SimpleNamespace(
            retry_reads=True, retry_writes=True, timeout=timeout
        )


MongoClient.__module__ = "pymongo.synchronous.mongo_client"


def test_a_client_that_only_time_limits_is_warned_of(warnings):
    exhaust(THREE.call, fail, MongoClient(10))
    rules = [Rule(on=KeyError, max_attempts=2)]
    endless = Policy(schedule=[0], rules=rules, name="poll")
    exhaust(endless.call, fail, MongoClient(10))
    switch = "MongoClient(retryReads=False, retryWrites=False) makes one request"
    retries = "pymongo.synchronous.mongo_client.MongoClient retries by itself"
    assert warnings() == [
        f"fetch: {retries} for up to 10 s in each of 3 attempts; {switch}",
        f"poll: {retries} for up to 10 s in each attempt; {switch}",
    ]


def test_layers_tell_of_a_client_that_only_time_limits():
    found = THREE.call(lambda *_: layers(), MongoClient(10), OpenAI())
    assert found.requests is None
    assert [each.time_limit for each in found] == [None, 10.0, None]
    assert str(found) == (
        "1. fetch: attempt 1, at most 3\n"
        "2. pymongo.synchronous.mongo_client.MongoClient: retries for up to 10 s in "
        "each attempt; MongoClient(retryReads=False, retryWrites=False) for one "
        "request\n"
        "3. openai.OpenAI: at most 3 requests in each attempt; "
        "openai.OpenAI(max_retries=0) for one\n"
        "requests: 3 x unlimited"
    )


def request_with_retries(**settings):
    """Return what an HTTP client of an integration calls for each request."""
    policy = Policy(schedule=[0, 0], **settings)
    return driver_factory(policy, fail, awaited=False)("GET %h", None)


def swallows(send):
    def fetch():
        with suppress(OSError):
            send()
        raise ConnectionError

    return fetch


REPEATED = (
    "fetch: GET %h makes up to 3 requests in each of 3 attempts: 3 x 3 = 9; "
    "max_attempts=1 in its client makes one; "
)


def test_a_client_whose_retries_were_used_up_and_are_repeated_is_warned_of(warnings):
    fetch = swallows(request_with_retries())
    exhaust(THREE.call, fetch)
    exhaust(THREE.call, fetch)
    way_out = "an error with its response, as of raise_for_status(), is not retried"
    assert warnings() == [REPEATED + way_out]


def test_nested_retry_repeats_the_retries_of_a_client(warnings):
    exhaust(THREE.replace(nested="retry").call, request_with_retries())
    assert warnings() == [REPEATED + 'nested="respect" does not repeat them']


def in_turn(*steps):
    """Return a function that calls one of these in each attempt."""
    rest = iter(steps)

    def step():
        return next(rest)()

    return swallows(step)


def test_the_first_failure_tells_that_the_retries_of_a_client_are_repeated(warnings):
    told = []

    def fetch(send):
        told.append(warnings())
        swallows(send)()

    exhaust(retry(THREE)(fetch), request_with_retries())
    assert [len(texts) for texts in told] == [0, 1, 1]


def test_a_client_is_warned_of_after_a_failure_without_it(warnings):
    fetch = retry(THREE)(lambda send: swallows(send)())
    exhaust(fetch, fail)
    assert warnings() == []
    exhaust(fetch, in_turn(fail, request_with_retries(), fail))
    assert len(warnings()) == 1


def test_a_block_warns_of_a_client_whose_retries_it_repeats(warnings):
    send = request_with_retries()
    with suppress(ConnectionError):
        for attempt in retrying(THREE):
            with attempt:
                swallows(send)()
    [text] = warnings()
    assert text.startswith(REPEATED)


def test_a_call_that_goes_on_without_its_client_is_not_warned_of(warnings):
    """It gives up in a call that succeeds, and the next call fails without it."""
    results = iter([None, OSError(), OSError(), OSError()])

    def fetch(send):
        with suppress(OSError):
            send()
        if error := next(results):
            raise error

    fetch_retried = retry(THREE)(fetch)
    fetch_retried(request_with_retries())
    exhaust(fetch_retried, lambda: None)
    assert warnings() == []


NOT_REPEATED = {
    "an error of the client": request_with_retries(),
    "a request that is sent once": swallows(request_with_retries(max_attempts=1)),
    "a retried function inside": swallows(retry(THREE)(fail)),
    "a client of the last attempt": in_turn(fail, fail, request_with_retries()),
}


@pytest.mark.parametrize("function", NOT_REPEATED.values(), ids=NOT_REPEATED)
def test_a_client_that_is_not_repeated_is_not_warned_of(function, warnings):
    exhaust(THREE.call, function)
    assert warnings() == []


def test_a_coroutine_function_is_warned_of(warnings):
    @aretry(THREE)
    async def fetch(_client):
        raise OSError

    with pytest.raises(OSError):
        asyncio.run(fetch(OpenAI()))
    assert warnings() == [warning("fetch")]


def test_a_call_that_is_watched_is_warned_of(warnings):
    exhaust(retry(THREE.replace(observers=[repr]))(fail), OpenAI())
    assert warnings() == [warning("fetch")]


QUIET = {
    "a client without retries": (THREE, OpenAI(0)),
    "a single attempt": (Policy(max_attempts=1, name="fetch"), OpenAI()),
    "a class": (THREE, OpenAI),
    "an object without attributes": (THREE, 3),
    "a client of another version": (THREE, OpenAI("two")),
    "a namespace that lies": (THREE, SimpleNamespace(max_retries=2)),
}


@pytest.mark.parametrize(("policy", "argument"), QUIET.values(), ids=QUIET)
def test_nothing_is_said_of(policy, argument, warnings):
    exhaust(policy.call, fail, argument)
    assert warnings() == []


def test_a_policy_without_a_limit_of_attempts_is_not_multiplied(warnings, clock):
    endless = Policy(schedule=constant(1), max_attempts=None, max_elapsed="3s")
    endless = endless.replace(name="fetch")
    exhaust(endless.call, fail, OpenAI())
    assert clock.sleeps
    [text] = warnings()
    assert text == (
        "fetch: openai.OpenAI makes up to 3 requests in each attempt; "
        "openai.OpenAI(max_retries=0) makes one"
    )


def test_a_process_that_cannot_import_goes_on(monkeypatch, warnings):
    def out_of_files(name):
        raise OSError(24, name)

    monkeypatch.setattr(ineffective, "import_late", out_of_files)
    exhaust(THREE.call, fail, OpenAI())
    assert warnings() == []


def test_the_libraries_are_those_whose_clients_are_known():
    names = {name.partition(".")[0] for name in _KNOWN}
    assert names == ineffective.RETRYING_LIBRARIES


def test_layers_are_those_of_calls_and_of_clients_in_them():
    checkout = Policy(schedule=[0], name="checkout")

    def fetch(_client):
        return layers()

    found = checkout.call(THREE.call, fetch, OpenAI())
    assert str(found) == (
        "1. checkout: attempt 1, at most 2\n"
        "2. fetch: attempt 1, at most 3\n"
        "3. openai.OpenAI: at most 3 requests in each attempt; "
        "openai.OpenAI(max_retries=0) for one\n"
        "requests: 2 x 3 x 3 = 18"
    )
    assert found.requests == 18
    assert [each.most for each in found] == [2, 3, 3]


def test_of_several_clients_in_one_call_the_largest_counts():
    def fetch(*_clients):
        return layers()

    found = THREE.call(fetch, OpenAI(1), OpenAI(4))
    assert [each.most for each in found] == [3, 2, 5]
    assert found.requests == 15
    assert str(found).endswith("requests: 3 x 5 = 15")


def test_two_clients_of_a_library_are_warned_of_once(warnings):
    exhaust(THREE.call, fail, OpenAI(0), OpenAI(), OpenAI(5))
    assert warnings() == [warning("fetch")]


def test_a_block_is_a_layer_without_clients():
    own = OpenAI()
    for attempt in retrying(THREE):
        with attempt:
            assert own.max_retries
            assert [each.name for each in layers()] == ["fetch"]


def test_a_variable_without_a_value_is_no_client(warnings):
    def fetch():
        if later:
            return
        raise OSError

    with pytest.raises(NameError):
        THREE.replace(on=NameError).call(fetch)
    assert warnings() == []
    later = None
    exhaust(THREE.call, fetch)


def test_layers_tell_the_running_attempt():
    seen = []

    def fetch():
        seen.append(layers()[0].attempt)
        raise OSError

    exhaust(THREE.call, fetch)
    assert seen == [1, 2, 3]


def test_layers_without_a_limit_have_no_number_of_requests():
    endless = Policy(schedule=constant(1), max_attempts=None, name="poll")
    found = endless.call(layers)
    assert found.requests is None
    assert str(found) == "1. poll: attempt 1, without a limit\nrequests: unlimited"


def test_there_are_no_layers_outside_of_a_call():
    assert layers() == Layers()
    assert str(layers()) == "requests: 1"


def test_own_retries_can_be_switched_off_in_a_copy():
    made, own = OpenAI(), OWN_RETRIES["openai"]
    assert own.count(own.off(made)) == 1
    assert own.count(made) == 3
    with pytest.raises(ConfigError, match="make it with redis"):
        OwnRetries("redis.Redis(retry=None)").off(made)
    assert OwnRetries("retry=None").count(made) is None


def test_no_failure_after_a_thousand_names_is_searched(warnings, monkeypatch):
    monkeypatch.setattr(ineffective, "searched", dict.fromkeys(map(str, range(1000))))
    exhaust(retry(THREE)(names_a_global))
    assert warnings() == []
