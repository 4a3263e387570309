"""8. Decorators disappear: also for `pickle`, `copy`, and a pool of processes."""

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
from retrykit.state.records import ErrorRecord
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


def told(fn, kind):
    """What comes of a call that succeeds in the end, and of one that never does."""
    if "partial" in kind:
        return importable.called(fn)
    return importable.called(fn, "a"), importable.called(fn, "never")


def sent(value):
    return pickle.loads(pickle.dumps(value))  # noqa: S301  what was just written


@pytest.mark.parametrize("protocol", [0, 2, pickle.HIGHEST_PROTOCOL])
@pytest.mark.parametrize("kind", CALLABLES)
def test_a_pickled_callable_is_retried_as_the_original(kind, protocol):
    fn = CALLABLES[kind]
    received = pickle.loads(pickle.dumps(fn, protocol))  # noqa: S301
    assert told(received, kind) == told(fn, kind)
    assert policy_of(received) == policy_of(fn)


@pytest.mark.parametrize("name", ["fetch", "afetch", "task", "cached", "described"])
def test_what_has_a_name_in_its_module_is_itself_again(name):
    fn = getattr(importable, name)
    assert sent(fn) is fn
    assert copy.copy(fn) is copy.deepcopy(fn) is fn


def test_a_bound_method_takes_its_object_along():
    received = sent(CLIENT.get)
    assert received.__self__ == CLIENT
    assert received.__self__ is not CLIENT
    assert received.__func__ is importable.Client.get
    assert sent(importable.Client.made) == importable.Client.made


def test_a_builtin_can_be_sent():
    assert sent(importable.builtin)([1, 2]) == 2
    assert policy_of(sent(importable.builtin)) == importable.POLICY


def local_function():
    def fetch(): ...

    return fetch


@pytest.mark.parametrize("fn", [lambda: 1, local_function()], ids=["lambda", "local"])
def test_what_has_no_name_to_be_found_by_is_refused_by_python_itself(fn):
    assert refused(retry(fn)) == refused(fn)


def test_a_function_that_goes_by_another_name_is_refused_by_python_itself():
    with pytest.raises(pickle.PicklingError, match="it's not the same object as"):
        pickle.dumps(importable.renamed)


def refused(fn):
    with pytest.raises((pickle.PicklingError, AttributeError)) as caught:
        pickle.dumps(fn)
    return caught.type, re.sub("0x[0-9a-f]+", "", str(caught.value))


COPIES = {"copy": copy.copy, "deepcopy": copy.deepcopy}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("kind", CALLABLES)
def test_a_copied_callable_is_retried_as_the_original(kind, copied):
    fn = CALLABLES[kind]
    assert told(copied(fn), kind) == told(fn, kind)
    assert policy_of(copied(fn)) == policy_of(fn)


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("decorate", [retry(importable.POLICY), with_policy])
def test_a_copied_object_is_a_copy_and_no_other_name_for_it(decorate, copied):
    fn = decorate(importable.Client("example"))
    again = copied(fn)
    again.host = "another"
    assert (fn.host, again.host) == ("example", "another")
    assert policy_of(again) == policy_of(fn)


@pytest.mark.parametrize("copied", [copy.deepcopy, sent], ids=["deepcopy", "pickle"])
def test_a_method_of_a_copied_object_is_bound_to_the_copy(copied):
    holder = importable.Holder()
    again = copied(holder)
    assert holder.get() is holder
    assert again.get() is again.quick() is again
    assert policy_of(again.get) == importable.POLICY


@pytest.fixture(scope="module", params=multiprocessing.get_all_start_methods())
def pool(request):
    context = multiprocessing.get_context(request.param)
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        yield pool


# A test run in several processes has threads of its own, which do not matter here.
forks = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")


@forks
@pytest.mark.parametrize("kind", CALLABLES)
def test_is_retried_in_another_process(pool, kind):
    arguments = () if "partial" in kind else ("a",)
    call = pool.submit(importable.called, CALLABLES[kind], *arguments)
    result, sleeps = call.result()
    assert sleeps == ([7.0, 7.0] if "another policy" in kind else [1.0, 2.0])
    assert result[-1] == "a"


@forks
def test_a_decorated_function_is_itself_what_is_submitted(pool):
    assert pool.submit(os.getpid).result() != os.getpid()
    assert pool.submit(importable.builtin, "abc").result() == 3
    assert list(pool.map(importable.builtin, ["a", "bc"])) == [1, 2]


@forks
@pytest.mark.parametrize("raises", ["last", "retry_error", "group"])
def test_an_error_that_comes_from_another_process_tells_its_history(pool, raises):
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
    assert "raise RefusedError" in before[0].traceback
    assert (last is error) is (raises == "last")
    assert str(last).endswith("[Errno localhost] 3")


@forks
def test_the_users_error_comes_with_its_attributes_and_its_note(pool):
    error = pool.submit(importable.give_up, "last").exception()
    assert (type(error), error.args) == (importable.RefusedError, ("localhost", 3))
    assert error.port == 3
    assert error.__notes__ == [
        "retrykit: gave up after 3 attempts in 3s: the schedule has ended"
    ]


@forks
def test_a_group_comes_with_its_errors(pool):
    group = pool.submit(importable.give_up, "group").exception()
    assert [each.port for each in group.exceptions] == [1, 2, 3]


def ended(raises):
    with pytest.raises((OSError, RetryError, ExceptionGroup)) as caught:
        importable.give_up(raises)
    return caught.value


@pytest.mark.parametrize("raises", ["last", "retry_error", "group"])
@pytest.mark.parametrize("copied", [sent, *COPIES.values()], ids=["pickle", *COPIES])
def test_a_copied_error_has_the_same_history(raises, copied):
    error = ended(raises)
    again = copied(error)
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert getattr(again, "__notes__", None) == getattr(error, "__notes__", None)
    assert (
        state_of(again).to_dict()["failures"][0]
        == (state_of(error).to_dict()["failures"][0])
    )
    assert (state_of(again).errors[-1] is again) is (raises == "last")
    assert state_of(again).describe() == state_of(error).describe()


@pytest.mark.parametrize("copied", [sent, *COPIES.values()], ids=["pickle", *COPIES])
def test_a_copied_state_says_the_same(copied):
    state = state_of(ended("last"))
    again = copied(state)
    assert again is not state
    assert again.to_dict() == state.to_dict()
    assert copied(again) == again == RetryState.from_dict(state.to_dict())
