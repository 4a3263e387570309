"""A script whose decorated functions other processes unpickle without it.

``python script_to_pickle.py LIBRARY FOLDER`` pickles each of them by value, with
cloudpickle or dill, into a file of the folder.
"""

import asyncio
import functools
import importlib
import sys
from pathlib import Path

from retrykit import (
    Policy,
    RetryState,
    aretry,
    budgets,
    current_state,
    resume,
    retry,
    retrying,
    with_policy,
)
from retrykit.testing import virtual_time

POLICY = Policy(schedule=[1, 2], on=OSError)
BUDGET = budgets.shared("key:pickled", make=budgets.TokenBucket)
BLOCK = retrying(POLICY)


class ServiceError(OSError):
    """An error that only the script defines."""


def is_service_error(error):
    return isinstance(error, ServiceError)


def fail_twice(value):
    if current_state().attempt < 3:
        raise ServiceError(value)
    return value


@retry(POLICY)
def function(value):
    return fail_twice(value)


@retry(POLICY)
async def coroutine_function(value):
    await asyncio.sleep(0)
    return fail_twice(value)


@retry(POLICY, attempt_timeout="1m")
async def timed(value):
    return fail_twice(value)


@aretry(POLICY)
def returns_an_awaitable(value):
    return coroutine_function(value)


@retry(POLICY)
def recursive(value, depth=3):
    return fail_twice(value) if depth == 0 else recursive(value, depth - 1)


def closure():
    factor = 2

    @retry(POLICY)
    def multiply(value):
        return fail_twice(value) * factor // factor

    return multiply


class Client:
    """A class with decorated methods."""

    @retry(POLICY)
    def get(self, value):
        return fail_twice(value)

    @retry(POLICY)
    async def aget(self, value):
        return fail_twice(value)

    @classmethod
    @retry(POLICY)
    def below_classmethod(cls, value):
        return fail_twice(value)

    @retry(POLICY)
    @staticmethod
    def above_staticmethod(value):
        return fail_twice(value)

    quick = with_policy(get, schedule=[7, 7])

    def __call__(self, value):
        return fail_twice(value)


def calls_a_decorated_function(value):
    return function(value)


def has_a_block(value):
    for attempt in retrying(POLICY):
        with attempt:
            return fail_twice(value)
    raise AssertionError


def loops_over_a_global_block(value):
    for attempt in BLOCK:
        with attempt:
            return fail_twice(value)
    raise AssertionError


@retry(policy=lambda: POLICY)
def asks_for_its_policy(value):
    return fail_twice(value)


@retry(policy=lambda: POLICY)
def asked_for_its_policy(value):
    return value


@retry(POLICY)
def called_before(value):
    return value


@retry(POLICY)
def failed_before(value):
    return fail_twice(value)


@retry(POLICY, budget=BUDGET)
def shares_a_budget(value):
    return fail_twice(value)


def with_conditions():
    refused = 0

    @retry(POLICY, on=is_service_error, on_result=lambda result: result == refused)
    def judged(value):
        return fail_twice(value)

    return judged


BY_DILL = {
    "function",
    "lambda",
    "closure",
    "partial",
    "staticmethod",
    "function under another policy",
    "function that asks for its policy",
    "function that has failed",
    "function with a block",
    "function with a shared budget",
}
"""Kinds that dill pickles for a process without the script; it cannot do that of
wrapped functions that call themselves, or are async."""


def kinds():
    """Return the callables by the names of their kinds."""
    client = Client()
    plain = function.__wrapped__
    return {
        "function": function,
        "lambda": retry(POLICY)(lambda value: fail_twice(value + 1) - 1),
        "closure": closure(),
        "recursive function": recursive,
        "coroutine function": coroutine_function,
        "coroutine function with a timeout": timed,
        "function that returns an awaitable": returns_an_awaitable,
        "method of the class": functools.partial(Client.get, client),
        "method": client.get,
        "coroutine method": client.aget,
        "classmethod": Client.below_classmethod,
        "staticmethod": Client.above_staticmethod,
        "method of its own under another policy": client.quick,
        "partial": retry(POLICY)(functools.partial(plain)),
        "partial of a decorated function": functools.partial(function),
        "callable object": retry(POLICY)(client),
        "bound method decorated later": retry(POLICY)(client.__call__),
        "function under another policy": with_policy(function, schedule=[7, 7]),
        "coroutine function under another policy": with_policy(
            coroutine_function, schedule=[7, 7]
        ),
        "method under another policy": with_policy(client.get, schedule=[7, 7]),
        "plain function under a policy": with_policy(plain, schedule=[7, 7]),
        "function under functools.wraps": functools.wraps(function)(
            lambda value: function(value + 1) - 1
        ),
        "function that calls a decorated one": calls_a_decorated_function,
        "function with a block": has_a_block,
        "function over a block of its module": loops_over_a_global_block,
        "function that asks for its policy": asks_for_its_policy,
        "function that has asked for its policy": asked_for_its_policy,
        "function that was called": called_before,
        "function that has failed": failed_before,
        "function with a shared budget": shares_a_budget,
        "function with conditions": with_conditions(),
        "resumed function": resume(
            function, RetryState("function", seed=7, epoch=0.0, attempt=1)
        ),
        "call of a policy": functools.partial(POLICY.call, plain),
    }


if __name__ == "__main__":
    library, folder = importlib.import_module(sys.argv[1]), Path(sys.argv[2])
    asked_for_its_policy(1)
    called_before(1)
    with virtual_time():
        failed_before(1)
    for kind, fn in kinds().items():
        if library.__name__ == "dill":
            # Otherwise it refers to the script.
            pickled = library.dumps(fn, recurse=True) if kind in BY_DILL else b""
        else:
            pickled = library.dumps(fn)
        (folder / kind).write_bytes(pickled)
