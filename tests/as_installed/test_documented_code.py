"""Every block of Python in the documents runs as the first of a new process.

A block runs after what its page has defined before of what it uses.
"""

import ast
import builtins
import re
from functools import cache
from textwrap import dedent
from typing import NamedTuple

import pytest

from tests._support import required
from tests._support.documents import PAGES, ROOT, blocks, marks_of, page_id
from tests._support.new_process import RETRYING, run_python

# What a block prints follows at once, or after a line that announces it.
BLOCK = re.compile(
    r"```python\n(?P<code>.*?)```\n"
    r"(?:\n(?:[^\n]*prints:\n\n)?```text\n(?P<printed>.*?)```)?",
    re.DOTALL,
)
MODULE = re.compile(r"# (\w+)\.py\n")
KNOWN = {name for names in required.PARTS.values() for name in names.split()}


class Block(NamedTuple):
    """A block of a page.

    Attributes:
        page: The path of the page.
        line: The number of the line on which the code begins.
        code: The code.
        printed: What the page says that it prints.
        before: The blocks before it.
    """

    page: str
    line: int
    code: str
    printed: str
    before: tuple["Block", ...]

    @property
    def module(self):
        """The name of the file that its first line names, or None."""
        found = MODULE.match(self.code)
        return found and found[1]


def python_blocks():
    for page in PAGES:
        text, before = page.read_text("utf-8"), []
        for found in BLOCK.finditer(text):
            line = text.count("\n", 0, found.start("code")) + 1
            # A block in a list is indented.
            code, printed = dedent(found["code"]), dedent(found["printed"] or "")
            block = Block(page_id(page), line, code, printed, tuple(before))
            yield block
            before.append(block)


def used_and_defined(node):
    """Return the names that code uses, and those that it defines or imports."""
    used, defined = set(), set()
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            (used if isinstance(each.ctx, ast.Load) else defined).add(each.id)
        elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(each.name)
        elif isinstance(each, ast.alias):
            defined.add(each.asname or each.name.split(".")[0])
    return used - {*dir(builtins)}, defined


def definitions(block):
    """Return the code before a block, on its page, that defines what it uses."""
    used, defined = used_and_defined(ast.parse(block.code))
    needed, chosen = used - defined, []
    earlier = [each.code for each in reversed(block.before) if not each.module]
    for statement in (x for code in earlier for x in reversed(statements(code))):
        used, defined = used_and_defined(statement)
        if needed & defined:
            needed = needed - defined | (used - defined)
            chosen.append(ast.unparse(statement))
    return "\n".join(reversed(chosen))


@cache
def statements(code):
    return ast.parse(code).body


def libraries(block):
    """Return the libraries that a block needs, other than retrykit."""
    own = {each.module: each for each in block.before if each.module}
    found = set()
    for node in ast.walk(ast.parse(f"{definitions(block)}\n{block.code}")):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            first, *others = name.split(".")
            found |= libraries(own[first]) if first in own else {first} & KNOWN
            for end in range(1, len(others) + 1 if first == "retrykit" else 1):
                module = "/".join([first, *others[:end]])
                found |= required.needs(f"{module}.py")
                found |= required.needs(f"{module}/__init__.py")
    return found


def parameters():
    """Return all blocks as parameters; only those of the README are quick."""
    for block in python_blocks():
        needed = sorted(libraries(block))
        missing = [name for name in needed if not required.installed(name)]
        why = f" (not here: no {', '.join(missing)})" if missing else ""
        marks = [pytest.mark.skip(reason=why)] if why else []
        marks += marks_of(block.page)
        yield pytest.param(block, id=f"{block.page}:{block.line}{why}", marks=marks)


SEPARATOR = "\x1e"


@pytest.mark.parametrize("block", [*parameters()])
def test_a_block_of_code_runs(block, tmp_path):
    # As modules, since some libraries warn of an application in the main module.
    modules = {each.module: each.code for each in (*block.before, block)}
    modules[block.module or "program"] = program(block)
    for name, code in modules.items():
        (tmp_path / f"{name}.py").write_text(code, "utf-8")
    settings = variables(ROOT / block.page)
    ended = run_python(f"import {block.module or 'program'}", tmp_path, **settings)
    assert (ended.code, RETRYING.sub("", ended.err)) == (0, "")
    if block.printed:
        printed = ended.out.rpartition(SEPARATOR)[2].replace("program.", "")
        assert without_measured_numbers(printed) == without_measured_numbers(
            block.printed
        )


def program(block):
    """Return the program of a block, which also calls the tests that it defines."""
    tests = re.findall(r"^def (test_\w+)\(\)", block.code, re.MULTILINE)
    separator = f"print({SEPARATOR!r}, end='')"
    calls = [f"{name}()" for name in tests]
    return "\n".join([definitions(block), separator, block.code, *calls])


def variables(page):
    """Return the environment variables that the commands of a page set."""
    lines = (block for language, block in blocks(page) if language == "sh")
    return dict(re.findall(r"^([A-Z_]+)=(\S+) ", "\n".join(lines), re.MULTILINE))


# Durations, random delays, times of the day, error numbers and ports.
MEASURED = re.compile(
    r"\d+(\.\d+)? ?[um]?s\b|\d+\.\d{3,}(e-\d+)?|\d+-\d\d-\d\d \d\d:\d\d:\d\d"
    r"|(?<=Errno )\d+|(?<=:)\d{4,5}\b"
)


def without_measured_numbers(text):
    """Return a text without numbers that differ in each run."""
    return MEASURED.sub("0", text)


def test_every_text_that_is_printed_is_compared():
    printed = [(each.page, each.line) for each in python_blocks() if each.printed]
    assert len(printed) >= 6
    assert len({page for page, _ in printed}) >= 4


def test_a_block_runs_after_the_definitions_of_what_it_uses():
    first = Block("page", 1, "a = 1\nprint(a)", "", ())
    second = Block("page", 2, "b = 2", "", (first,))
    third = Block("page", 3, "def f():\n    return a", "", (first, second))
    last = Block("page", 4, "f()", "", (first, second, third))
    assert definitions(last) == "a = 1\ndef f():\n    return a"


def test_the_library_of_an_integration_is_needed():
    code = "import sys\nfrom retrykit.integrations import httpx as retries"
    assert libraries(Block("page", 1, code, "", ())) == {"httpx"}


def test_numbers_that_are_the_same_in_each_run_are_compared():
    assert without_measured_numbers("[Errno 111] after 5 attempts in 1.5 ms") == (
        "[Errno 0] after 5 attempts in 0"
    )
    assert (
        without_measured_numbers("0.2 left at 2026-11-29 18:12:08") == "0.2 left at 0"
    )
