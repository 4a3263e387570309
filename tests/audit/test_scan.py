"""Reading of many files, by one process and by several."""

import gc
import os

import pytest

from retrykit.audit._files import SourceFile, find_files
from retrykit.audit._reading import Reading, read_file
from retrykit.audit._scan import scan, without_collection

FILES = [SourceFile(f"{each}.py", str(each), "", "") for each in range(330)]


def read_number(file):
    return Reading(None, int(file.module))


def read_or_end(file):
    if file.module == "70":
        os._exit(1)
    return read_number(file)


def refuse(file):
    raise OSError(file.path)


def lines(readings):
    return [each.lines for each in readings]


@pytest.mark.parametrize("processes", [1, 2])
def test_returns_readings_in_order_and_tells_progress(processes):
    told = []
    readings = scan(FILES, processes, lambda *each: told.append(each), read_number)
    assert lines(readings) == [*range(330)]
    assert told == [(min(each, 330), 330) for each in range(40, 361, 40)]


def test_a_file_that_ends_its_process_is_told_and_the_rest_is_read():
    readings = scan(FILES, 2, read=read_or_end)
    expected = [0 if each == 70 else each for each in range(330)]
    assert lines(readings) == expected
    [problem] = readings[70].problems
    assert str(problem) == "70.py: ends the process that reads it"


def test_where_processes_fail_one_process_reads():
    main = os.getpid()
    readings = scan(FILES, 2, read=_Elsewhere(main))
    assert lines(readings) == [1] * 330


class _Elsewhere:
    """Reads in one process, and fails in others."""

    def __init__(self, process):
        self.process = process

    def __call__(self, file):
        if os.getpid() != self.process:
            refuse(file)
        return Reading(None, 1)


@pytest.mark.thorough
def test_what_reads_looks_for_no_cycles_and_leaves_none(tmp_path):
    code = "\n".join(f"def f{each}(x):\n    return g(x, y=1)" for each in range(9))
    (tmp_path / "a.py").write_text(code)
    [file] = find_files([tmp_path])[0]
    gc.collect()
    with without_collection():
        assert not gc.isenabled()
        assert len(read_file(file, names_only=True).module.definitions) == 9
        assert gc.collect() == 0
    assert gc.isenabled()


def test_a_process_of_the_pool_looks_for_no_cycles():
    assert all(each.lines == 0 for each in scan(FILES, 2, read=read_collection))


def read_collection(_file):
    return Reading(None, int(gc.isenabled()))
