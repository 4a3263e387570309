"""8. Decorators disappear: `pickle`, `copy` and process pools."""

import copy
import functools
import multiprocessing
import os
import pickle
import re
from concurrent.futures import ProcessPoolExecutor

import pytest

from retrykit import (
    RetryError,
    RetryState,
    StopReason,
    policy_of,
    retry,
    state_of,
    with_policy,
)
from retrykit._core.failures import ErrorRecord
from tests._support import importable

CLIENT = importable.Client("elsewhere")
CALLABLES = {
    "function": importable.fetch,
    "coroutine function": importable.afetch,
    "function that returns an awaitable": importable.task,
    "cached function": importable.cached,
    "function under a cache": importable.cached_above,
    "singledispatch function": importable.described,
    "method of the class": functools.partial(importable.Client.get, CLIENT),
    "method": CLIENT.get,
    "coroutine method": CLIENT.aget,
    "retry above classmethod": importable.Client.made,
    "retry below classmethod": importable.Client.also_made,
    "retry above staticmethod": importable.Client.given,
    "retry below staticmethod": CLIENT.also_given,
    "bound method decorated later": importable.bound_later,
    "callable object": importable.callable_object,
    "partial": importable.partial,
    "partial of a decorated function": importable.partial_of_it,
    "partial that returns an awaitable": importable.partial_task,
    "function under another policy": importable.quick,
    "method under another policy": importable.quick_method,
    "callable object under another policy": importable.quick_object,
    "classmethod under another policy": importable.quick_classmethod,
    "partial under another policy": importable.quick_partial,
    "cached method": CLIENT.cached,
    "method of its own under another policy": CLIENT.quick,
}


def outcomes(fn, kind):
    """Return the outcomes of a call that succeeds in the end and of one that fails."""
    if "partial" in kind:
        return importable.call_with_delays(fn)
    return importable.call_with_delays(fn, "a"), importable.call_with_delays(
        fn, "never"
    )


def pickled(value):
    return pickle.loads(pickle.dumps(value))  # noqa: S301  pickled here


@pytest.mark.parametrize("protocol", [0, 2, pickle.HIGHEST_PROTOCOL])
@pytest.mark.parametrize("kind", CALLABLES)
def test_a_pickled_callable_retries_like_the_original(kind, protocol):
    fn = CALLABLES[kind]
    received = pickle.loads(pickle.dumps(fn, protocol))  # noqa: S301
    assert outcomes(received, kind) == outcomes(fn, kind)
    assert policy_of(received) == policy_of(fn)


@pytest.mark.parametrize("name", ["fetch", "afetch", "task", "cached", "described"])
def test_a_module_level_function_is_pickled_by_reference(name):
    fn = getattr(importable, name)
    assert pickled(fn) is fn
    assert copy.copy(fn) is copy.deepcopy(fn) is fn


def test_a_bound_method_is_pickled_with_its_object():
    received = pickled(CLIENT.get)
    assert received.__self__ == CLIENT
    assert received.__self__ is not CLIENT
    assert received.__func__ is importable.Client.get
    assert pickled(importable.Client.made) == importable.Client.made


def test_a_builtin_can_be_pickled():
    assert pickled(importable.builtin)([1, 2]) == 2
    assert policy_of(pickled(importable.builtin)) == importable.POLICY


def local_function():
    def fetch(): ...

    return fetch


@pytest.mark.parametrize("fn", [lambda: 1, local_function()], ids=["lambda", "local"])
def test_a_local_function_raises_pythons_own_pickling_error(fn):
    assert pickling_error(retry(fn)) == pickling_error(fn)


def test_a_function_under_another_name_raises_pythons_own_pickling_error():
    with pytest.raises(pickle.PicklingError, match="it's not the same object as"):
        pickle.dumps(importable.renamed)


def pickling_error(fn):
    with pytest.raises((pickle.PicklingError, AttributeError)) as caught:
        pickle.dumps(fn)
    return caught.type, re.sub("0x[0-9a-f]+", "", str(caught.value))


COPIES = {"copy": copy.copy, "deepcopy": copy.deepcopy}


@pytest.mark.parametrize("copy_function", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("kind", CALLABLES)
def test_a_copied_callable_retries_like_the_original(kind, copy_function):
    fn = CALLABLES[kind]
    assert outcomes(copy_function(fn), kind) == outcomes(fn, kind)
    assert policy_of(copy_function(fn)) == policy_of(fn)


@pytest.mark.parametrize("copy_function", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("decorate", [retry(importable.POLICY), with_policy])
def test_a_copied_object_is_independent_of_the_original(decorate, copy_function):
    fn = decorate(importable.Client("example"))
    again = copy_function(fn)
    again.host = "another"
    assert (fn.host, again.host) == ("example", "another")
    assert policy_of(again) == policy_of(fn)


@pytest.mark.parametrize(
    "copy_function", [copy.deepcopy, pickled], ids=["deepcopy", "pickle"]
)
def test_a_method_of_a_copied_object_is_bound_to_the_copy(copy_function):
    holder = importable.Holder()
    again = copy_function(holder)
    assert holder.get() is holder
    assert again.get() is again.quick() is again
    assert policy_of(again.get) == importable.POLICY


@pytest.fixture(scope="module", params=multiprocessing.get_all_start_methods())
def pool(request):
    context = multiprocessing.get_context(request.param)
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        yield pool


# pytest-xdist has threads, which do no harm here.
ignores_fork_warning = pytest.mark.filterwarnings(
    "ignore:This process:DeprecationWarning"
)


@pytest.mark.needs("processes")
@ignores_fork_warning
@pytest.mark.parametrize("kind", CALLABLES)
def test_is_retried_in_another_process(pool, kind):
    arguments = () if "partial" in kind else ("a",)
    call = pool.submit(importable.call_with_delays, CALLABLES[kind], *arguments)
    result, sleeps = call.result()
    assert sleeps == ([7.0, 7.0] if "another policy" in kind else [1.0, 2.0])
    assert result[-1] == "a"


@pytest.mark.needs("processes")
@ignores_fork_warning
def test_a_decorated_function_can_be_submitted_to_a_pool(pool):
    assert pool.submit(os.getpid).result() != os.getpid()
    assert pool.submit(importable.builtin, "abc").result() == 3
    assert list(pool.map(importable.builtin, ["a", "bc"])) == [1, 2]


@pytest.mark.needs("processes")
@ignores_fork_warning
@pytest.mark.parametrize("raises", ["last", "retry_error", "group"])
def test_an_error_from_another_process_has_its_state(pool, raises):
    error = pool.submit(importable.give_up, raises).exception()
    state = state_of(error)
    assert (state.attempt, state.total_delay, state.name) == (3, 3.0, "fetch")
    assert state.stop_reason is StopReason.SCHEDULE_ENDED
    assert [f.delay for f in state.failures] == [1.0, 2.0, None]
    *before, last = state.errors
    assert [type(each) for each in before] == [ErrorRecord] * 2
    assert [each.message for each in before] == [
        "[Errno localhost] 1",
        "[Errno localhost] 2",
    ]
    assert "in give_up" not in before[0].traceback
    assert "raise TwoArgumentError" in before[0].traceback
    assert (last is error) is (raises == "last")
    assert str(last).endswith("[Errno localhost] 3")


@pytest.mark.needs("processes")
@ignores_fork_warning
def test_an_error_from_another_process_has_its_attributes_and_note(pool):
    error = pool.submit(importable.give_up, "last").exception()
    assert (type(error), error.args) == (importable.TwoArgumentError, ("localhost", 3))
    assert error.port == 3
    assert error.__notes__ == [
        "retrykit: gave up after 3 attempts in 3 s: the schedule has ended"
    ]


@pytest.mark.needs("processes")
@ignores_fork_warning
def test_a_group_from_another_process_has_its_errors(pool):
    group = pool.submit(importable.give_up, "group").exception()
    assert [each.port for each in group.exceptions] == [1, 2, 3]


def exhausted_error(raises):
    with pytest.raises((OSError, RetryError, ExceptionGroup)) as caught:
        importable.give_up(raises)
    return caught.value


@pytest.mark.parametrize("raises", ["last", "retry_error", "group"])
@pytest.mark.parametrize(
    "copy_function", [pickled, *COPIES.values()], ids=["pickle", *COPIES]
)
def test_a_copied_error_has_the_same_history(raises, copy_function):
    error = exhausted_error(raises)
    again = copy_function(error)
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert getattr(again, "__notes__", None) == getattr(error, "__notes__", None)
    assert (
        state_of(again).to_dict()["failures"][0]
        == (state_of(error).to_dict()["failures"][0])
    )
    assert (state_of(again).errors[-1] is again) is (raises == "last")
    assert state_of(again).describe() == state_of(error).describe()


@pytest.mark.parametrize(
    "copy_function", [pickled, *COPIES.values()], ids=["pickle", *COPIES]
)
def test_a_copied_state_is_equal_data(copy_function):
    state = state_of(exhausted_error("last"))
    again = copy_function(state)
    assert again is not state
    assert again.to_dict() == state.to_dict()
    assert copy_function(again) == again == RetryState.from_dict(state.to_dict())
