"""Predicates that answer with neither True nor False."""

import asyncio
import gc
import threading
import weakref

import pytest

from retrykit import Policy, Rule, aretry, state_of
from retrykit.budgets import TokenBucket
from tests._support.required import installed


def fail():
    raise OSError("busy")


def failed(policy, colour=None):
    """Return the error of a call that fails every time."""
    call = colour(policy)(fail) if colour else lambda: policy.call(fail)
    with pytest.raises(OSError, match="busy") as caught:
        call()
    return caught.value


def warnings(caplog):
    assert {record.levelname for record in caplog.records} <= {"WARNING"}
    assert {record.name for record in caplog.records} <= {"retrykit"}
    return [record.getMessage() for record in caplog.records]


def predicate(answer):
    """Return a new predicate, and what is warned of it, after its setting."""

    def asked(outcome):
        return answer

    kind = "None" if answer is None else f"a value of type {type(answer).__name__}"
    told = f"{asked.__qualname__} returned {kind}, neither True nor False: "
    told += f"it counts as {bool(answer)}; return a bool"
    return asked, told


def test_a_forgotten_return_is_told_in_the_log_and_on_the_error(colour, caplog):
    asked, told = predicate(None)
    error = failed(Policy(on=asked, schedule=[0, 0]), colour)
    assert state_of(error).attempt == 1
    assert warnings(caplog) == [f"on={told}"]
    assert error.__notes__ == [f"retrykit: on={told}"]


SETTINGS = {
    "on": lambda asked: {"on": asked},
    "give_up_on": lambda asked: {"give_up_on": asked},
    "on of a rule": lambda asked: {"rules": [Rule(on=asked, max_attempts=2)]},
    "on_result": lambda asked: {"on_result": asked},
    "costs": lambda asked: {"budget": TokenBucket(costs=[(asked, 1)])},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_every_predicate_is_warned_of_by_its_setting(name, colour, caplog):
    asked, told = predicate(None)
    policy = Policy(schedule=[0], **SETTINGS[name](asked))
    if name == "on_result":
        assert colour.run(policy, str).ok
    else:
        failed(policy, colour)
    assert warnings(caplog) == [f"{name.split()[0]}={told}"]


@pytest.mark.parametrize("answer", [None, 0, "", [], 1, "yes", ["x"]])
def test_an_answer_counts_by_its_truth_as_before(answer, colour, caplog):
    asked, told = predicate(answer)
    error = failed(Policy(on=asked, schedule=[0, 0]), colour)
    assert state_of(error).attempt == (3 if answer else 1)
    assert warnings(caplog) == [f"on={told}"]


def test_an_async_predicate_is_warned_of_too(caplog):
    async def forgot(error):
        await asyncio.sleep(0)

    @aretry(on=forgot, schedule=[0])
    async def afail():
        fail()

    with pytest.raises(OSError, match="busy"):
        asyncio.run(afail())
    assert "forgot returned None, neither True nor False" in warnings(caplog)[0]


def test_true_and_false_are_not_warned_of(colour, caplog):
    for answer in (True, False):
        policy = Policy(schedule=[0], on=lambda _, answer=answer: answer)
        failed(policy, colour)
    assert warnings(caplog) == []


class OldBool:
    """What numpy calls its bool before 2.0."""

    def __bool__(self):
        return True


OldBool.__module__, OldBool.__qualname__ = "numpy", "bool_"


def test_a_bool_of_numpy_is_a_bool(caplog):
    answers = [OldBool()]
    if installed("numpy"):
        import numpy as np

        answers.append(np.float64(1) < np.float64(2))
    for answer in answers:
        asked, _ = predicate(answer)
        assert state_of(failed(Policy(on=asked, schedule=[0]))).attempt == 2
    assert warnings(caplog) == []


def test_a_predicate_is_warned_of_once_whoever_asks_it(caplog):
    first, second = (predicate(None)[0] for _ in range(2))
    for asked in (first, second, first, second):
        failed(Policy(on=asked, give_up_on=asked, schedule=[0]))
    assert len(warnings(caplog)) == 2


def test_a_predicate_is_warned_of_once_by_many_threads(caplog):
    asked, _ = predicate(None)
    together = threading.Barrier(8)

    def run():
        together.wait()
        failed(Policy(on=asked))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(warnings(caplog)) == 1


def test_a_predicate_that_was_warned_of_is_not_kept_alive(caplog):
    asked, _ = predicate(None)
    failed(Policy(on=asked))
    gone = weakref.ref(asked)
    del asked
    gc.collect()
    assert gone() is None
    for _ in range(3):
        # Each may be where the one before was.
        failed(Policy(on=predicate(None)[0]))
        gc.collect()
    assert len(warnings(caplog)) == 4


def test_objects_that_cannot_be_remembered_are_warned_of_once_by_their_class(caplog):
    class Slotted:
        __slots__ = ()
        __hash__ = None

        def __call__(self, error):
            return None

        def __repr__(self):
            return "Slotted()"

    for asked in (Slotted(), Slotted()):
        failed(Policy(on=asked))
    [told] = warnings(caplog)
    assert told.startswith("on=Slotted() returned None, ")


def test_an_answer_that_has_no_truth_fails_the_policy_alone(caplog):
    class Unclear:
        def __bool__(self):
            raise ValueError("neither")

    error = failed(Policy(on=lambda _: Unclear(), schedule=[0]))
    assert "its policy failed with ValueError" in error.__notes__[0]
    assert [record.levelname for record in caplog.records] == ["ERROR"]
