"""Context-local overrides: where they apply, and in which order they close."""

import asyncio
import contextvars

import pytest

from retrykit._internal import fast_path
from retrykit._internal.context import ContextOverride
from retrykit.errors import NestingError
from tests._support.concurrency import in_thread


def test_applies_until_it_is_closed():
    scope = ContextOverride("default")
    with scope.push("a block", "outer") as setting:
        assert (scope.get(), setting.value) == ("outer", "outer")
        with scope.push("a block", "inner"):
            assert scope.get() == "inner"
        assert scope.get() == "outer"
    assert scope.get() == "default"


def test_is_restored_after_an_error():
    scope = ContextOverride("default")
    with pytest.raises(KeyError), scope.push("a block", "value"):
        raise KeyError
    assert scope.get() == "default"


@pytest.mark.needs("threads")
def test_applies_only_in_its_own_thread():
    scope = ContextOverride("default")
    with scope.push("a block", "value"):
        assert in_thread(scope.get) == "default"


@pytest.mark.needs("threads")
def test_applies_to_all_threads_if_process_wide():
    scope = ContextOverride("default")
    with scope.push("a block", "outer", process_wide=True):
        with scope.push("a block", "inner", process_wide=True):
            assert (scope.get(), in_thread(scope.get)) == ("inner", "inner")
        assert (scope.get(), in_thread(scope.get)) == ("outer", "outer")
    assert (scope.get(), in_thread(scope.get)) == ("default", "default")


def test_an_override_of_the_context_wins_over_a_process_wide_one():
    scope = ContextOverride("default")
    with scope.push("a block", "own"):
        opened = in_thread(lambda: scope.push("a block", "all", process_wide=True))
        assert (scope.get(), in_thread(scope.get)) == ("own", "all")
        with pytest.raises(NestingError):
            opened.__exit__(None, None, None)
        assert (scope.get(), in_thread(scope.get)) == ("own", "default")


def test_a_task_inherits_and_keeps_an_override():
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


def test_blocks_the_fast_path_while_it_is_open():
    before = len(fast_path.blockers)
    with ContextOverride(0).push("a block", 1):
        assert len(fast_path.blockers) == before + 1
    assert len(fast_path.blockers) == before


def test_closing_the_outer_block_first_raises_an_error_that_names_both():
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


def test_closing_in_another_context_raises_and_closes():
    scope = ContextOverride("default")
    setting = scope.push("virtual_time()", "value")
    with pytest.raises(NestingError) as caught:
        contextvars.Context().run(setting.__exit__, None, None, None)
    assert str(caught.value) == (
        "virtual_time() must be closed in the thread or task that opened it"
    )
    assert scope.get() == "default"


def test_closing_in_a_context_with_another_override_raises_the_same_error():
    scope = ContextOverride("default")
    setting = scope.push("a block", "value")

    def close():
        with scope.push("another", "other"):
            setting.__exit__(None, None, None)

    with pytest.raises(NestingError, match="in the thread or task that opened it"):
        contextvars.Context().run(close)
    assert scope.get() == "default"
