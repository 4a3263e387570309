"""Every block of Python in the documents runs as the first of a new process.

A block runs after those before it on its page that define what it uses.
"""

import ast
import builtins
import re
from typing import NamedTuple

import pytest

from tests._support import required
from tests._support.documents import PAGES, ROOT, blocks, page_id
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
            code, printed = found["code"], found["printed"] or ""
            block = Block(page_id(page), line, code, printed, tuple(before))
            yield block
            before.append(block)


def used_and_defined(code):
    """Return the names that code uses, and those that it defines or imports."""
    used, defined = set(), set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else defined).add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.alias):
            defined.add(node.asname or node.name.split(".")[0])
    return used - {*dir(builtins)}, defined


def with_definitions(block):
    """Return the blocks that a block needs, in their order, and the block itself."""
    used, defined = used_and_defined(block.code)
    needed, chosen = used - defined, [block]
    for earlier in reversed(block.before):
        used, defined = used_and_defined(earlier.code)
        if needed & defined and not earlier.module:
            needed = needed - defined | (used - defined)
            chosen.append(earlier)
    return chosen[::-1]


def libraries(chosen):
    """Return the libraries that blocks import, other than retrykit."""
    own = {each.module for block in chosen for each in block.before}
    for block in chosen:
        for node in ast.walk(ast.parse(block.code)):
            names = [alias.name for alias in getattr(node, "names", [])]
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{name}" for name in names]
                # The library of an integration has its name.
                names = [n.removeprefix("retrykit.integrations.") for n in names]
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield from {name.split(".")[0] for name in names} & KNOWN - own


def parameters():
    for block in python_blocks():
        needed = sorted({*libraries(with_definitions(block))})
        missing = [name for name in needed if not required.installed(name)]
        why = f" (not here: no {', '.join(missing)})" if missing else ""
        marks = [pytest.mark.skip(reason=why)] if why else []
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
        assert without_numbers(printed) == without_numbers(block.printed)


def program(block):
    """Return the program of a block, which also calls the tests that it defines."""
    *definitions, last = (each.code for each in with_definitions(block))
    tests = re.findall(r"^def (test_\w+)\(\)", last, re.MULTILINE)
    separator = f"print({SEPARATOR!r}, end='')"
    return "\n".join([*definitions, separator, last, *(f"{name}()" for name in tests)])


def variables(page):
    """Return the environment variables that the commands of a page set."""
    lines = (block for language, block in blocks(page) if language == "sh")
    return dict(re.findall(r"^([A-Z_]+)=(\S+) ", "\n".join(lines), re.MULTILINE))


def without_numbers(text):
    """Return a text without durations and error numbers, which differ in each run."""
    return re.sub(r"\d+(\.\d+)?( ?[um]?s\b)?", "0", text)


def test_every_text_that_is_printed_is_compared():
    printed = [(each.page, each.line) for each in python_blocks() if each.printed]
    assert len(printed) >= 6
    assert len({page for page, _ in printed}) >= 4


def test_a_block_runs_after_those_that_define_what_it_uses():
    first = Block("page", 1, "a = 1", "", ())
    second = Block("page", 2, "b = 2", "", (first,))
    third = Block("page", 3, "def f(): return a", "", (first, second))
    last = Block("page", 4, "f()", "", (first, second, third))
    assert with_definitions(last) == [first, third, last]


def test_the_library_of_an_integration_is_needed():
    code = "import sys\nfrom retrykit.integrations import httpx as retries"
    assert {*libraries([Block("page", 1, code, "", ())])} == {"httpx"}
