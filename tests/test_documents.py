"""All files and functions that ARCHITECTURE.md and CONTRIBUTING.md name exist."""

import ast
import re
from pathlib import Path

import pytest

from tests.test_architecture import PACKAGE, ROOMS, trees

ROOT = Path(__file__).parent.parent
DOCUMENTS = {
    name: (ROOT / name).read_text("utf-8")
    for name in ("ARCHITECTURE.md", "CONTRIBUTING.md")
}


def test_the_diagram_of_rooms_matches_the_table_of_imports():
    text = DOCUMENTS["ARCHITECTURE.md"]
    picture = re.search("```text\n(.*?)```", text, re.DOTALL)[1].splitlines()
    lines = [{*line.split()} for line in picture]
    assert set().union(*lines) == {*ROOMS}
    assert [line for line in lines if not line] == []
    for number, line in enumerate(lines):
        below = set().union(*lines[number + 1 :])
        assert {each for name in line for each in ROOMS[name].split()} <= below, line


def test_every_room_is_in_the_table_of_rooms():
    table = DOCUMENTS["ARCHITECTURE.md"].partition("| open first |")[2]
    rows = re.findall(r"^\| `(\w+)` \|", table.partition("## ")[0], re.MULTILINE)
    assert rows == [*ROOMS]


FILES = re.compile(r"`([\w./*]+\.(?:py|js|md|toml|json|yaml))`")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_file_named_in_a_document_exists(document):
    named = FILES.findall(DOCUMENTS[document])
    found = {
        name
        for name in named
        for folder in (ROOT, PACKAGE, PACKAGE.parent)
        if any(folder.glob(name))
    }
    assert set(named) - found == set()
    assert len(named) > 9


def qualified_names(node, prefix):
    """Yield the qualified names of all that a module or a class defines.

    Definitions inside of a function count as those of its module.
    """
    for child in ast.iter_child_nodes(node):
        inner = prefix
        if isinstance(child, ast.Assign | ast.AnnAssign):
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            yield from (f"{prefix}.{x.id}" for x in targets if isinstance(x, ast.Name))
        elif isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}.{child.name}"
            inner += f".{child.name}" * isinstance(child, ast.ClassDef)
        yield from qualified_names(child, inner)


@pytest.mark.thorough
@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_function_named_in_a_document_exists(document):
    # Without the underscores of private modules.
    modules = ((name, f".retrykit.{name.replace('._', '.')}") for name in trees())
    known = [
        each for name, path in modules for each in qualified_names(trees()[name], path)
    ]
    dotted = re.findall(r"`([A-Za-z_]\w*(?:\.\w+)+)(?:\(\))?`", DOCUMENTS[document])
    for name in {*dotted} - set(FILES.findall(DOCUMENTS[document])):
        # A module may be named without its room, and a class without its module.
        found = any(each.endswith(f".{name}") for each in known)
        assert found or name.split(".")[0] == "asyncio", name
