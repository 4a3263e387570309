"""8. Decorators disappear: functions of scripts and notebooks, pickled by value."""

import asyncio
import contextvars
import copy
import json
import pickle
from inspect import isawaitable
from pathlib import Path

import pytest

from retrykit import Policy, current_state, policy_of, retry
from retrykit._core.call import current_entry
from retrykit._internal.clocks import sync_clock
from retrykit._internal.fast_path import blockers, failure_blockers
from retrykit._internal.loop_clock import async_clock
from retrykit.testing import virtual_time
from tests._support import script_to_pickle
from tests._support.new_process import run_python

SCRIPT = Path(script_to_pickle.__file__)
KINDS = sorted(script_to_pickle.kinds())

LOADING = """
import asyncio, inspect, json, pathlib
import LIBRARY as library
from retrykit import ConfigError, policy_of
from retrykit.budgets._shared_budgets import balances
from retrykit.testing import virtual_time

def outcome(fn):
    async def call():
        result = fn(8)
        return await result if inspect.isawaitable(result) else result
    before = balances()
    with virtual_time() as clock:
        result = asyncio.run(call())
    try:
        schedule = repr(policy_of(fn).schedule)
    except ConfigError:
        schedule = None
    return result, clock.sleeps, schedule, balances() != before

files = [file for file in pathlib.Path(FOLDER).iterdir() if file.stat().st_size]
print(json.dumps({x.name: outcome(library.loads(x.read_bytes())) for x in files}))
"""


def unpickled(library, folder):
    """Return the outcomes of all callables in a process without the script."""
    arguments = [str(SCRIPT), library, str(folder)]
    code = f"import runpy, sys; sys.argv[:] = {arguments!r}\n"
    code += f"runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    dumped = run_python(code, folder.parent)
    assert dumped.code == 0, dumped.err
    code = LOADING.replace("FOLDER", repr(str(folder)))
    loaded = run_python(code.replace("LIBRARY", library), folder.parent)
    assert loaded.code == 0, loaded.err
    return json.loads(loaded.out)


@pytest.fixture(scope="module")
def by_cloudpickle(tmp_path_factory):
    return unpickled("cloudpickle", tmp_path_factory.mktemp("cloudpickle"))


@pytest.fixture(scope="module")
def by_dill(tmp_path_factory):
    return unpickled("dill", tmp_path_factory.mktemp("dill"))


def expected(kind):
    """Return the result, the delays, the policy, and whether the budget has paid."""
    delays = [7.0, 7.0] if "under a" in kind else [1.0, 2.0]
    schedule = f"sequence({delays})"
    if kind in UNDECORATED:
        schedule = None
    if kind in {"function that was called", "function that has asked for its policy"}:
        delays = []
    return [8, delays, schedule, "budget" in kind]


UNDECORATED = {
    "call of a policy",
    "function over a block of its module",
    "function that calls a decorated one",
    "function with a block",
    "resumed function",
}


@pytest.mark.needs("processes", "cloudpickle")
@pytest.mark.parametrize("kind", KINDS)
def test_cloudpickle_takes_a_function_of_a_script_along(by_cloudpickle, kind):
    assert by_cloudpickle[kind] == expected(kind)


@pytest.mark.thorough
@pytest.mark.needs("processes", "dill")
@pytest.mark.parametrize("kind", sorted(script_to_pickle.BY_DILL))
def test_dill_takes_a_function_of_a_script_along(by_dill, kind):
    assert by_dill[kind] == expected(kind)


JOBLIB = """
from joblib import Parallel, delayed
from retrykit import current_state, retry

@retry(schedule=[0, 0], on=OSError)
def fetch(number):
    if current_state().attempt < 3:
        raise OSError(number)
    return number, current_state().attempt

if __name__ == "__main__":
    print(Parallel(n_jobs=1 + 1)(delayed(fetch)(number) for number in range(3)))
"""


@pytest.mark.thorough
@pytest.mark.needs("processes", "joblib")
def test_the_workers_of_joblib_retry_a_function_of_a_script(tmp_path):
    ended = run_python(JOBLIB, tmp_path, JOBLIB_TEMP_FOLDER=str(tmp_path))
    assert (ended.code, ended.out) == (0, "[(0, 3), (1, 3), (2, 3)]\n"), ended.err


@pytest.fixture
def by_value():
    """Pickle the functions of the script by value, which is no script here."""
    import cloudpickle

    cloudpickle.register_pickle_by_value(script_to_pickle)
    yield lambda fn: pickle.loads(cloudpickle.dumps(fn))  # noqa: S301  pickled here
    cloudpickle.unregister_pickle_by_value(script_to_pickle)


@pytest.mark.needs("cloudpickle")
@pytest.mark.parametrize(
    "kind", ["function", "coroutine function", "function under another policy"]
)
def test_a_function_pickled_by_value_is_another_function_that_retries(by_value, kind):
    fn = script_to_pickle.kinds()[kind]
    received = by_value(fn)
    assert type(received) is type(script_to_pickle.function)
    assert received is not fn
    assert received.__code__ is not fn.__wrapped__.__code__
    with virtual_time() as clock:
        result = received(8)
        assert (asyncio.run(result) if isawaitable(result) else result) == 8
    assert f"sequence({clock.sleeps})" == repr(policy_of(received).schedule)


@pytest.mark.needs("cloudpickle")
def test_a_call_of_a_function_pickled_by_value_is_nested_in_others(by_value):
    depth = by_value(retry(lambda: current_state().depth))
    assert depth() == 0
    assert Policy().call(depth) == 1


PARTS = {
    "variable of the current call": current_entry,
    "sync clock": sync_clock,
    "async clock": async_clock,
    "clock of the event loops": async_clock.real,
    "blockers of the fast path": blockers,
    "blockers after a failure": failure_blockers,
}


@pytest.mark.parametrize("part", PARTS)
def test_a_driver_uses_the_parts_of_its_own_process(part):
    value = PARTS[part]
    assert pickle.loads(pickle.dumps(value)) is value  # noqa: S301  pickled here
    assert copy.deepcopy(value) is value


def test_other_context_variables_still_cannot_be_pickled():
    with pytest.raises(TypeError, match=r"^cannot pickle '\S*ContextVar' object$"):
        pickle.dumps(contextvars.ContextVar("other"))


REGISTERED = """
import contextvars, copyreg, pickle
copyreg.pickle(contextvars.ContextVar, lambda variable: (str, (variable.name,)))
import retrykit._core.call as call
variable = contextvars.ContextVar("request")
assert pickle.loads(pickle.dumps(variable)) == "request"
assert pickle.loads(pickle.dumps(call.current_entry)) is call.current_entry
"""


@pytest.mark.needs("processes")
def test_what_others_registered_for_context_variables_still_applies(tmp_path):
    ended = run_python(REGISTERED, tmp_path)
    assert ended.code == 0, ended.err
