"""ManualCall: calls that are driven step by step."""

import pytest

from retrykit import Policy, StopReason, current_state, state_of
from retrykit._core.call import OWNER, TAPE, current_entry
from retrykit._core.manual import ManualCall
from retrykit._internal.clocks import sync_clock
from retrykit._internal.loop_clock import async_clock

POLICY = Policy(schedule=[1, 2])


def test_a_call_is_driven_step_by_step():
    call = ManualCall(POLICY, "fetch", sync_clock)
    assert call.start() is None
    assert call.fail(OSError("refused")) == 1.0
    call.next()
    token = call.enter()
    assert (current_state().name, current_state().attempt) == ("fetch", 2)
    current_entry.reset(token)
    state = call.state
    assert call.succeed("data")
    assert not call.running
    assert state.stop_reason is StopReason.SUCCEEDED


def test_a_call_that_gives_up_returns_its_final_error():
    call = ManualCall(
        POLICY.replace(max_attempts=1, raises="retry_error"), "f", sync_clock
    )
    call.start()
    error = OSError("refused")
    final_error = call.fail(error)
    assert final_error.__cause__ is error
    assert not call.running


def test_an_interrupt_after_the_end_has_no_state():
    call = ManualCall(POLICY, "fetch", sync_clock)
    call.start()
    assert call.succeed("data")
    interrupt = KeyboardInterrupt()
    call.abort(interrupt)
    assert state_of(interrupt) is None


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ValueError])
def test_an_aborted_call_is_dead(kind):
    call = ManualCall(POLICY, "fetch", sync_clock)
    call.start()
    call.abort(error := kind())
    assert state_of(error).status == "dead"
    assert not call.running


def test_a_call_may_begin_before_there_is_an_event_loop():
    call = ManualCall(POLICY, "fetch", async_clock)
    assert (call.attempt, call.state.elapsed) == (1, 0.0)


def test_a_call_that_succeeds_makes_no_state():
    call = ManualCall(POLICY, "fetch", sync_clock)
    assert (call.start(), call.attempt, call.next_delay) == (None, 1, None)
    token = call.enter()
    entry = current_entry.get()
    current_entry.reset(token)
    call.accept()
    assert not call.running
    assert len(entry) == TAPE
    assert entry[OWNER] is None


def test_a_call_whose_state_was_asked_for_has_one_after_it_has_succeeded():
    call = ManualCall(POLICY, "fetch", sync_clock)
    token = call.enter()
    state = current_state()
    current_entry.reset(token)
    call.accept()
    assert (state.status, call.running) == ("succeeded", False)
