"""A function is called for all items, in order, by this process or by several."""

import os

import pytest

from retrykit._internal.processes import Work, count_processors

MAIN = os.getpid()


def double(item):
    return 2 * item


def double_or_end(item):
    if item == 7:
        os._exit(1)
    return double(item)


def double_here(item):
    if os.getpid() != MAIN:
        raise OSError
    return double(item)


def say(item):
    return f"{item} failed"


@pytest.mark.parametrize("processes", [1, 2])
def test_results_are_in_order_and_progress_is_told(processes):
    told = []
    work = Work(double, say, chunk=4, few=2)
    found = work.map(range(10), processes, lambda *each: told.append(each))
    assert found == [*range(0, 20, 2)]
    assert told == [(4, 10), (8, 10), (10, 10)]


def test_few_items_are_done_by_this_process():
    work = Work(double_here, say, chunk=4, few=11)
    assert work.map(range(10), 2, print) == [*range(0, 20, 2)]


def test_an_item_that_ends_its_process_fails_alone():
    work = Work(double_or_end, say, chunk=4, few=2)
    expected = ["7 failed" if each == 7 else 2 * each for each in range(10)]
    assert work.map(range(10), 2, print) == expected


def test_where_processes_fail_this_process_goes_on():
    work = Work(double_here, say, chunk=4, few=2)
    assert work.map(range(10), 2, print) == [*range(0, 20, 2)]


def test_there_is_a_processor():
    assert count_processors() >= 1
