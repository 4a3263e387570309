"""The layers that retry around a call, and the warning that they multiply."""

import asyncio
import functools
import logging
from types import ModuleType, SimpleNamespace

import pytest

from retrykit import Layers, Policy, aretry, layers, retry, retrying
from retrykit._core import ineffective
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
        return [text for text in texts if "requests" in text]

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
