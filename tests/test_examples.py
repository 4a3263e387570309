"""Every example runs by itself and prints what its docstring says."""

import ast
from doctest import ELLIPSIS, OutputChecker
from inspect import cleandoc
from itertools import zip_longest
from pathlib import Path
from textwrap import dedent

import pytest

from tests._support import required
from tests._support.new_process import RETRYING, run_file
from tests._support.thorough import first_are_quick

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(each for each in FOLDER.glob("*.py") if not required.missing(each))


@pytest.mark.parametrize(
    "example", first_are_quick(6, EXAMPLES), ids=lambda path: path.stem
)
def test_an_example_prints_what_its_docstring_says(example):
    said = expected_output(example.read_text("utf-8"))
    ended = run_file(example)
    # Retries are logged, and reach stderr unless the example configures logging.
    assert (ended.code, RETRYING.sub("", ended.err)) == (0, "")
    if not matches(said, ended.out):
        # Compared as strings if they differ, for pytest's report.
        assert ended.out == said


def test_finds_the_examples():
    assert "flaky_service" in {example.stem for example in EXAMPLES}


def test_an_example_without_expected_output_is_rejected():
    with pytest.raises(AssertionError, match="no section"):
        expected_output('"""Print a line."""\nprint("a line")\n')


@pytest.mark.parametrize(
    ("printed", "agreed"),
    [
        ("took 12 ms\n\ndone\n", True),
        ("took 12 s\n\ndone\n", False),
        ("took 12 ms\n\ndone\nmore\n", False),
        ("took 12 ms\n\n", False),
        ("took 12 ms\nat most ms\n\ndone\n", False),
    ],
    ids=["the same", "another text", "a line more", "a line less", "a line within"],
)
def test_dots_match_any_text_within_a_line(printed, agreed):
    source = '"""Wait.\n\nPrints::\n\n    took ... ms\n\n    done\n"""\n'
    assert matches(expected_output(source), printed) is agreed


def expected_output(source):
    """Return the indented end of the docstring, after a line of ``Prints ...::``."""
    docstring = cleandoc(ast.get_docstring(ast.parse(source)) or "")
    text, _, printed = docstring.rpartition("::\n\n")
    suggestion = "no section: the docstring must end with Prints:: and the output"
    assert text.rpartition("\n\n")[2].startswith("Prints"), suggestion
    return dedent(printed) + "\n"


def matches(said, printed):
    check = OutputChecker().check_output
    lines = zip_longest(said.splitlines(), printed.splitlines(), fillvalue=None)
    return all(
        want is not None and got is not None and check(want, got, ELLIPSIS)
        for want, got in lines
    )
