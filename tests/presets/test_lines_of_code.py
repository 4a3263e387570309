"""One preset costs at most 25 lines of code, with what compares it with its original.

Decorators count, and functions and constants that no other preset uses; docstrings,
comments, blank lines, and the modules that all presets share do not.
"""

import ast
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from retrykit import presets
from retrykit.config._preset_names import BUILT_IN
from tests import originals

MOST = 25

# The functions of `tests.originals` that register an original.
REGISTERS = {"documented", "original", "register", "run_by_hand"}


def count_lines(statement: ast.stmt, lines: list[str]) -> int:
    """Return the number of lines of code of a statement, decorators included."""
    decorators = getattr(statement, "decorator_list", [])
    first = min(each.lineno for each in (statement, *decorators))
    assert statement.end_lineno is not None
    numbers = set(range(first, statement.end_lineno + 1))
    for node in ast.walk(statement):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node):
            docstring = node.body[0]
            assert docstring.end_lineno is not None
            numbers -= set(range(docstring.lineno, docstring.end_lineno + 1))
    texts = [lines[number - 1].strip() for number in numbers]
    return sum(bool(text) and not text.startswith("#") for text in texts)


def preset_of(statement: ast.stmt) -> Iterator[str]:
    """Yield the preset that a statement of a module of presets defines, if any."""
    decorators = map(ast.unparse, getattr(statement, "decorator_list", []))
    if isinstance(statement, ast.FunctionDef) and "preset" in decorators:
        yield statement.name.replace("_", "-")


def originals_of(statement: ast.stmt) -> Iterator[str]:
    """Yield the presets whose originals a statement of their modules registers."""
    for node in ast.walk(statement):
        if not isinstance(node, ast.Call) or ast.unparse(node.func) not in REGISTERS:
            continue
        named = [each.value for each in node.keywords if each.arg == "preset"]
        first = (named or node.args)[0]
        assert isinstance(first, ast.Constant), ast.unparse(node)
        # The first argument of `register` is a path in a package.
        yield first.value.partition("/")[0]


def names_of(statement: ast.stmt) -> set[str]:
    """Return the names that a statement defines."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    targets = getattr(statement, "targets", [getattr(statement, "target", None)])
    return {each.id for each in targets if isinstance(each, ast.Name)} - {"__all__"}


def costs(
    paths: Iterable[Path], presets_in: Callable[[ast.stmt], Iterator[str]]
) -> dict[str, int]:
    """Return the lines of code of each preset in some modules."""
    own: dict[str, set[ast.stmt]] = {}
    helpers: dict[str, ast.stmt] = {}
    sizes: dict[ast.stmt, int] = {}
    for path in paths:
        lines = path.read_text("utf-8").splitlines()
        for statement in ast.parse("\n".join(lines)).body:
            sizes[statement] = count_lines(statement, lines)
            found = [*presets_in(statement)]
            for name in found:
                own.setdefault(name, set()).add(statement)
            if not found:
                helpers |= dict.fromkeys(names_of(statement), statement)
    used = {name: find_used(parts, helpers) for name, parts in own.items()}
    result = {}
    for name, parts in own.items():
        alone = used[name].difference(*(used[x] for x in used if x != name))
        result[name] = sum(sizes[each] for each in parts | alone)
    return result


def find_used(parts: set[ast.stmt], helpers: dict[str, ast.stmt]) -> set[ast.stmt]:
    """Return the helpers that some statements use, and those that these use in turn."""
    found: set[ast.stmt] = set()
    pending = [*parts]
    for statement in pending:
        names = {each.id for each in ast.walk(statement) if isinstance(each, ast.Name)}
        new = {helpers[name] for name in names & helpers.keys()} - found
        found |= new
        pending += new
    return found


SHARED = {"__init__.py", "_form.py"}
FOLDERS = [Path(each.__path__[0]) for each in (presets, originals)]
PRESETS = costs(
    (each for each in FOLDERS[0].glob("*.py") if each.name not in SHARED), preset_of
)
CHECKS = costs(FOLDERS[1].glob("originals_of_*.py"), originals_of)


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_preset_and_its_check_have_at_most_25_lines_of_code(name):
    lines = PRESETS[name] + CHECKS[name]
    parts = f"{lines} lines: {PRESETS[name]} of the preset, {CHECKS[name]} of its check"
    assert lines <= MOST, parts


def test_all_code_of_originals_is_in_modules_that_are_read_here():
    files = (each for each in FOLDERS[1].rglob("*.*") if each.is_file())
    others = {each.name for each in files if each.suffix not in {".py", ".pyc"}}
    assert not others, f"{others}: programs in other languages are text of a module"


SOURCE = '''
@preset
def one(*, retries: Retries = 3) -> Policy:
    """Return a policy.

    It has a longer docstring.
    """
    # Each retry is delayed.

    return policy(LONGEST, shared(retries))


@preset
def other(*, retries: Retries = 3) -> Policy:
    return shared(retries)


def shared(retries: int) -> Policy:
    return Policy(max_attempts=retries + 1)


LONGEST = 60


def policy(longest: float, policy: Policy) -> Policy:
    return policy
'''


def test_helpers_that_only_one_preset_uses_count_and_docstrings_do_not(tmp_path):
    path = tmp_path / "_some.py"
    path.write_text(SOURCE, "utf-8")
    assert costs([path], preset_of) == {"one": 3 + 2 + 1, "other": 3}
