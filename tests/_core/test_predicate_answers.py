"""Predicates that return neither True nor False."""

import asyncio
import gc
import threading
import weakref

import pytest

from retrykit import Policy, Rule, aretry, state_of
from retrykit.budgets import TokenBucket
from tests._support.required import installed


def raise_error():
    raise OSError("busy")


def failed(policy, backend=None):
    """Return the error of a call that fails every time."""
    call = backend(policy)(raise_error) if backend else lambda: policy.call(raise_error)
    with pytest.raises(OSError, match="busy") as caught:
        call()
    return caught.value


def warnings(caplog):
    assert {record.levelname for record in caplog.records} <= {"WARNING"}
    assert {record.name for record in caplog.records} <= {"retrykit"}
    return [record.getMessage() for record in caplog.records]


def predicate(answer):
    """Return a new predicate, and the expected warning without the setting."""

    def predicate_with_answer(outcome):
        return answer

    type_name = "None" if answer is None else f"a value of type {type(answer).__name__}"
    warning = (
        f"{predicate_with_answer.__qualname__} returned {type_name}, neither True nor "
        f"False: it counts as {bool(answer)}; return a bool"
    )
    return predicate_with_answer, warning


def test_a_forgotten_return_is_logged_and_noted_on_the_error(backend, caplog):
    predicate_with_answer, warning = predicate(None)
    error = failed(Policy(on=predicate_with_answer, schedule=[0, 0]), backend)
    assert state_of(error).attempt == 1
    assert warnings(caplog) == [f"on={warning}"]
    assert error.__notes__ == [f"retrykit: on={warning}"]


SETTINGS = {
    "on": lambda predicate_with_answer: {"on": predicate_with_answer},
    "give_up_on": lambda predicate_with_answer: {"give_up_on": predicate_with_answer},
    "on of a rule": lambda predicate_with_answer: {
        "rules": [Rule(on=predicate_with_answer, max_attempts=2)]
    },
    "on_result": lambda predicate_with_answer: {"on_result": predicate_with_answer},
    "costs": lambda predicate_with_answer: {
        "budget": TokenBucket(costs=[(predicate_with_answer, 1)])
    },
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.usefixtures("quiet")
def test_the_warning_names_the_setting_of_the_predicate(name, backend, caplog):
    predicate_with_answer, warning = predicate(None)
    policy = Policy(schedule=[0], **SETTINGS[name](predicate_with_answer))
    if name == "on_result":
        assert backend.run(policy, str).ok
    else:
        failed(policy, backend)
    assert warnings(caplog) == [f"{name.split()[0]}={warning}"]


@pytest.mark.parametrize("answer", [None, 0, "", [], 1, "yes", ["x"]])
@pytest.mark.usefixtures("quiet")
def test_an_answer_counts_by_its_truth_value(answer, backend, caplog):
    predicate_with_answer, warning = predicate(answer)
    error = failed(Policy(on=predicate_with_answer, schedule=[0, 0]), backend)
    assert state_of(error).attempt == (3 if answer else 1)
    assert warnings(caplog) == [f"on={warning}"]


def test_warns_about_an_async_predicate(caplog):
    async def returns_none(error):
        await asyncio.sleep(0)

    @aretry(on=returns_none, schedule=[0])
    async def araise_error():
        raise_error()

    with pytest.raises(OSError, match="busy"):
        asyncio.run(araise_error())
    assert "returns_none returned None, neither True nor False" in warnings(caplog)[0]


@pytest.mark.usefixtures("quiet")
def test_does_not_warn_about_true_and_false(backend, caplog):
    for answer in (True, False):
        policy = Policy(schedule=[0], on=lambda _, answer=answer: answer)
        failed(policy, backend)
    assert warnings(caplog) == []


class OldBool:
    """Named like numpy's bool before 2.0."""

    def __bool__(self):
        return True


OldBool.__module__, OldBool.__qualname__ = "numpy", "bool_"


@pytest.mark.usefixtures("quiet")
def test_does_not_warn_about_a_numpy_bool(caplog):
    answers = [OldBool()]
    if installed("numpy"):
        import numpy as np

        answers.append(np.float64(1) < np.float64(2))
    for answer in answers:
        predicate_with_answer, _ = predicate(answer)
        assert (
            state_of(failed(Policy(on=predicate_with_answer, schedule=[0]))).attempt
            == 2
        )
    assert warnings(caplog) == []


def test_warns_about_a_predicate_once_for_all_callers(caplog):
    first, second = (predicate(None)[0] for _ in range(2))
    for predicate_with_answer in (first, second, first, second):
        failed(
            Policy(
                on=predicate_with_answer, give_up_on=predicate_with_answer, schedule=[0]
            )
        )
    assert len(warnings(caplog)) == 2


@pytest.mark.needs("threads")
def test_warns_about_a_predicate_once_in_many_threads(caplog):
    predicate_with_answer, _ = predicate(None)
    together = threading.Barrier(8)

    def run():
        together.wait()
        failed(Policy(on=predicate_with_answer))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(warnings(caplog)) == 1


@pytest.mark.needs("speed")
@pytest.mark.usefixtures("quick_collector")
def test_a_warning_does_not_keep_the_predicate_alive(caplog):
    predicate_with_answer, _ = predicate(None)
    failed(Policy(on=predicate_with_answer))
    reference = weakref.ref(predicate_with_answer)
    del predicate_with_answer
    gc.collect()
    assert reference() is None
    for _ in range(3):
        # Each may have the id of the one before.
        failed(Policy(on=predicate(None)[0]))
        gc.collect()
    assert len(warnings(caplog)) == 4


def test_warns_once_per_class_about_objects_without_weak_references(caplog):
    class Slotted:
        __slots__ = ()
        __hash__ = None

        def __call__(self, error):
            return None

        def __repr__(self):
            return "Slotted()"

    for predicate_with_answer in (Slotted(), Slotted()):
        failed(Policy(on=predicate_with_answer))
    [warning] = warnings(caplog)
    assert warning.startswith("on=Slotted() returned None, ")


def test_an_answer_without_a_truth_value_is_a_fault_of_the_policy(caplog):
    class Unclear:
        def __bool__(self):
            raise ValueError("neither")

    error = failed(Policy(on=lambda _: Unclear(), schedule=[0]))
    assert "its policy failed with ValueError" in error.__notes__[0]
    assert [record.levelname for record in caplog.records] == ["ERROR"]
