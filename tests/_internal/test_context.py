"""What holds for a while holds where it was opened, and closes in order."""

import asyncio
import contextvars

import pytest

from retrykit._internal import fast_path
from retrykit._internal.context import ContextOverride
from retrykit.errors import NestingError
from tests._support.side import in_thread


def test_holds_until_it_is_closed():
    scope = ContextOverride("default")
    with scope.push("a block", "outer") as held:
        assert (scope.get(), held.value) == ("outer", "outer")
        with scope.push("a block", "inner"):
            assert scope.get() == "inner"
        assert scope.get() == "outer"
    assert scope.get() == "default"


def test_is_given_back_after_an_error():
    scope = ContextOverride("default")
    with pytest.raises(KeyError), scope.push("a block", "value"):
        raise KeyError
    assert scope.get() == "default"


def test_holds_in_its_own_thread_only():
    scope = ContextOverride("default")
    with scope.push("a block", "value"):
        assert in_thread(scope.get) == "default"


def test_holds_everywhere_if_asked_to():
    scope = ContextOverride("default")
    with scope.push("a block", "outer", process_wide=True):
        with scope.push("a block", "inner", process_wide=True):
            assert (scope.get(), in_thread(scope.get)) == ("inner", "inner")
        assert (scope.get(), in_thread(scope.get)) == ("outer", "outer")
    assert (scope.get(), in_thread(scope.get)) == ("default", "default")


def test_what_a_context_has_of_its_own_comes_before_what_is_everywhere():
    scope = ContextOverride("default")
    with scope.push("a block", "own"):
        opened = in_thread(lambda: scope.push("a block", "all", process_wide=True))
        assert (scope.get(), in_thread(scope.get)) == ("own", "all")
        with pytest.raises(NestingError):
            opened.__exit__(None, None, None)
        assert (scope.get(), in_thread(scope.get)) == ("own", "default")


def test_a_task_inherits_it_and_keeps_it():
    scope = ContextOverride("default")

    async def main():
        done = asyncio.Event()

        async def later():
            await done.wait()
            return scope.get()

        with scope.push("a block", "value"):
            task = asyncio.create_task(later())
        done.set()
        return await task

    assert asyncio.run(main()) == "value"


def test_asks_for_attention_while_it_holds():
    before = len(fast_path.blockers)
    with ContextOverride(0).push("a block", 1):
        assert len(fast_path.blockers) == before + 1
    assert len(fast_path.blockers) == before


def test_closing_the_outer_one_first_is_an_error_that_names_both():
    scope = ContextOverride("default")
    outer = scope.push("virtual_time()", "outer")
    inner = scope.push("virtual_time(start=5)", "inner")
    with pytest.raises(NestingError) as caught:
        outer.__exit__(None, None, None)
    assert str(caught.value) == (
        "virtual_time() must be closed after virtual_time(start=5), opened inside it"
    )
    assert scope.get() == "inner"
    inner.__exit__(None, None, None)
    assert scope.get() == "default"


def test_closing_it_in_another_context_is_an_error_and_closes_it():
    scope = ContextOverride("default")
    held = scope.push("virtual_time()", "value")
    with pytest.raises(NestingError) as caught:
        contextvars.Context().run(held.__exit__, None, None, None)
    assert str(caught.value) == (
        "virtual_time() must be closed in the thread or task that opened it"
    )
    assert scope.get() == "default"


def test_closing_it_where_something_else_holds_is_the_same_error():
    scope = ContextOverride("default")
    held = scope.push("a block", "value")

    def close():
        with scope.push("another", "other"):
            held.__exit__(None, None, None)

    with pytest.raises(NestingError, match="in the thread or task that opened it"):
        contextvars.Context().run(close)
    assert scope.get() == "default"
