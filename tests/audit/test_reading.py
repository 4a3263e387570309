"""Reading of files: encodings, notebooks, faults and limits."""

import json
import time

import pytest

from retrykit.audit._files import find_files
from retrykit.audit._reading import LARGEST, read_file, read_lines

LOOP = (
    b"def f():\n    while True:\n        try:\n            return g()\n"
    b"        except OSError:\n            time.sleep(1)\n"
)


def read(tmp_path, content, name="a.py", **options):
    (tmp_path / name).write_bytes(content)
    files, _ = find_files([tmp_path / name])
    return read_file(files[0], **options)


def reasons(reading):
    return [(each.line, each.reason) for each in reading.problems]


def notebook(*cells):
    made = [
        {"cell_type": "code", "source": each} if isinstance(each, str | list) else each
        for each in cells
    ]
    return json.dumps({"cells": made}).encode()


@pytest.mark.parametrize(
    "content",
    [
        LOOP,
        b"\xef\xbb\xbf" + LOOP,
        b"# coding: latin-1\nx = '\xe9'\n" + LOOP,
        b"#!/bin/python\n# vim: set fileencoding=cp1252 :\nx = '\x80'\n" + LOOP,
        b"# coding: utf-7\nx = '+AOk-'\n" + LOOP,
        LOOP.replace(b"\n", b"\r\n"),
        LOOP.replace(b"\n", b"\r"),
        b"x = '\\d'\n" + LOOP,
    ],
    ids=["UTF-8", "BOM", "latin-1", "cp1252", "UTF-7", "CRLF", "CR", "escape"],
)
def test_reads_every_encoding_of_python(tmp_path, content):
    reading = read(tmp_path, content)
    assert not reading.problems
    assert len(reading.module.loops) == 1
    assert reading.lines == 6 + content.count(b"'") // 2 + content.count(b"#!") + (
        b"coding" in content
    )


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        (b"retry(\n", 1, "not Python: '(' was never closed"),
        (
            b"retry()\nprint 1\n",
            2,
            "not Python: Missing parentheses in call to 'print'",
        ),
        (b"retry('\xff')", 1, "not Python: (unicode error) 'utf-8' codec can't decode"),
        (b"# coding: nonsense\n", 0, "not Python: "),
        (b"x = 1\0", 0, "not Python: source code string cannot contain null bytes"),
        (b"f(retry(" + b"-" * 100_000 + b"1))", 0, "nested too deeply"),
        pytest.param(
            b"retry()\nx = a" + b".b" * 50_000,
            0,
            "nested too deeply",
            marks=pytest.mark.needs("deep recursion"),
        ),
        (b"retry()\n#" + b"x" * LARGEST, 0, "larger than 4 MB; not read"),
        (b"x" * 64_000_001, 0, "larger than 64 MB; not read"),
    ],
    ids=[
        *("open", "Python 2", "not UTF-8", "unknown encoding", "null", "deep"),
        *("long chain", "large", "huge"),
    ],
)
def test_tells_why_a_file_is_not_read(tmp_path, content, line, reason):
    reading = read(tmp_path, content)
    assert reading.module is None
    [(told_line, told)] = reasons(reading)
    assert told.startswith((reason, "not Python"))
    assert told_line == line or "null" in reason or "encoding" in told


def test_a_file_that_is_gone_is_told(tmp_path):
    (tmp_path / "a.py").write_text("")
    files, _ = find_files([tmp_path])
    (tmp_path / "a.py").unlink()
    assert reasons(read_file(files[0])) == [(0, "No such file or directory")]
    assert read_lines(files[0].path) == []


def test_a_file_may_not_take_longer_than_its_time(tmp_path):
    reading = read(tmp_path, LOOP, longest=-1)
    assert reasons(reading) == [(0, "takes more than -1 s")]


def test_a_file_without_sites_is_parsed_only_if_it_is_needed(tmp_path):
    assert read(tmp_path, b"x = 1") == (None, 1, (), {}, ())
    assert read(tmp_path, b"x = 1", names_only=True).module.constants == {"x": 1}
    assert read(tmp_path, b"").lines == 0


def test_comments_ignore_rules_by_line(tmp_path):
    text = (
        b"retry()  # retrykit: ignore\n"
        b"retry()  # noqa  # retrykit:ignore[no-jitter, unbounded]\n"
        b"x = '# retrykit: ignore'\n"
    )
    ignored = read(tmp_path, text).ignored
    assert ignored == {1: (), 2: ("no-jitter", "unbounded")}


def test_reads_the_cells_of_a_notebook(tmp_path):
    loop = LOOP.decode().splitlines(keepends=True)
    content = notebook(
        {"cell_type": "markdown", "source": "# Title"},
        "import time",
        ["%matplotlib inline\n", "!pip install x\n", "y = %time 1\n", "z?\n", *loop],
        "%%bash\nls",
        "%%time\nx = 1",
        "%%capture\n%%time\nx = 1",
        "%%",
        "x = (",
        3,
    )
    reading = read(tmp_path, content, "a.ipynb")
    assert [(each.number, each.line) for each in reading.cells] == [
        *[(2, 1), (3, 2), (4, 13), (5, 14), (6, 16), (7, 19)]
    ]
    assert [each.line for each in reading.module.loops] == [7]
    [problem] = reading.problems
    assert problem.path.endswith("a.ipynb:cell 8")
    assert (problem.line, problem.reason) == (1, "not Python: '(' was never closed")
    assert read_lines(str(tmp_path / "a.ipynb"))[6] == "    while True:"


@pytest.mark.parametrize(
    "content", [b"{", b"[]", b"{}", b'{"cells": 3}', b"[" * 100_000]
)
def test_tells_what_is_not_a_notebook(tmp_path, content):
    [(_, reason)] = reasons(read(tmp_path, content, "a.ipynb"))
    assert reason.startswith("not a notebook: ")


def test_no_cell_makes_reading_slow(tmp_path):
    content = notebook("x = (\n" + " " * 100_000, "(" + "a," * 5_000)
    start = time.process_time()
    read(tmp_path, content, "a.ipynb")
    # A search that is quadratic takes ten seconds or more.
    assert time.process_time() - start < 2


def test_no_cell_causes_a_warning(tmp_path):
    content = notebook("x = '\\d'\ny = 1if x else 2", "%time\nx = '\\d'")
    assert not read(tmp_path, content, "a.ipynb").problems


def test_the_lines_of_a_file_are_decoded_as_it_says(tmp_path):
    file = tmp_path / "a.py"
    file.write_bytes(b"# coding: latin-1\r\nx = '\xe9'")
    assert read_lines(str(file)) == ["# coding: latin-1", "x = '\xe9'"]
    file.write_bytes(b"# coding: nonsense")
    assert read_lines(str(file)) == []
