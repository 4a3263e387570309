"""The errors that a policy retries if it does not say which."""

import copy
import pickle

import pytest

from retrykit import ConfigError, Policy, StopReason, retry, state_of
from retrykit.analysis.lint import check

MISTAKES = [
    AssertionError,
    AttributeError,
    ImportError,
    ModuleNotFoundError,
    NameError,
    NotImplementedError,
    RecursionError,
    SyntaxError,
    TypeError,
    UnboundLocalError,
]
OTHERS = [OSError, ValueError, KeyError, RuntimeError, TimeoutError, EOFError]


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_mistake_in_the_code_is_not_retried(backend, clock, flaky, kind):
    error = kind("x")
    with pytest.raises(kind) as caught:
        backend()(flaky(error))()
    assert caught.value is error
    assert clock.sleeps == []
    assert state_of(error).stop_reason is StopReason.NOT_RETRYABLE
    (note,) = error.__notes__
    name = kind.__name__
    reason = f"retrykit: not retried, since {name} is a programming error; "
    assert note == f"{reason}to retry it, write on={name}"


@pytest.mark.parametrize("kind", MISTAKES)
@pytest.mark.parametrize("on", [Exception, "itself", lambda _error: True])
def test_a_mistake_that_is_named_is_retried(clock, flaky, kind, on):
    on = kind if on == "itself" else on
    assert retry(schedule=[1], on=on)(flaky(kind()))() == "done"


@pytest.mark.parametrize("kind", OTHERS)
def test_every_other_error_is_retried(backend, clock, flaky, kind):
    assert backend()(flaky(kind()))() == "done"


def test_an_error_that_on_leaves_out_gets_no_note(clock, flaky):
    error = TypeError()
    with pytest.raises(TypeError):
        retry(on=OSError)(flaky(error))()
    assert not hasattr(error, "__notes__")


def test_lint_and_the_default_agree():
    assert check(Policy()) == ()
    patient = Policy(max_attempts=9)
    assert "retries-every-exception" not in {each.rule for each in check(patient)}
    careless = patient.replace(on=Exception)
    assert "retries-every-exception" in {each.rule for each in check(careless)}


def test_it_is_left_out_of_data_and_expressions():
    assert "on" not in Policy().to_dict()
    assert Policy.from_dict(Policy(seed=7).to_dict()) == Policy(seed=7)
    assert repr(Policy(seed=7)) == "Policy(seed=7)"
    assert copy.deepcopy(Policy()) == Policy()
    assert pickle.loads(pickle.dumps(Policy())) == Policy()  # noqa: S301  our own
    assert Policy(on=Exception) != Policy()


@pytest.mark.parametrize("rules", [{}, {"give_up_on": OSError}])
def test_on_may_be_empty_only_where_results_are_judged(rules):
    with pytest.raises(ConfigError, match="write Exception, or on_result"):
        Policy(on=(), **rules)
    assert Policy(on=(), on_result=lambda x: x is None, **rules).on == ()


def test_on_none_is_told_what_to_write():
    with pytest.raises(ConfigError, match=r"write \(\) for no errors"):
        Policy(on=None)
