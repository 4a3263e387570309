"""Docstrings, comments and messages of the package are in plain English."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

import retrykit

ROOT = Path(retrykit.__file__).parent

BANNED = re.compile(
    r"know(s|n)? nothing of|is not known here|(is|of) none of these|\bways? out\b"
    r"|\blets? (it )?out\b|colour|honour|behaviour|finalis(e|i)|written down"
    r"|writes? down|a text that is not empty|a whole number(?! of)|refused results?"
    r"|results? (is|are) refused|made again|told of\b|nobody knows|who mistypes"
    r"|\bcomes? of (a|an|the) (attempt|call)|(in|out)side of\b|\bfor ever\b|\banew\b"
    r"|for so many|by nobody|\b(which|it|one|that) is no (?!more|longer|such|other)\w",
    re.IGNORECASE,
)
RIDDLE = re.compile(r"(What|Whether|Who|Whose|How|Which|Where|Lets?|Gives?)\b")

MODULES = {path.relative_to(ROOT).as_posix(): path for path in ROOT.rglob("*.py")}
CHECKED = sorted(MODULES)


def texts(source):
    """Yield line and text of each comment and string, with lines joined by spaces."""
    line, before = 0, ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            text, follows = token.string.lstrip("# "), token.start[0] == line + 1
            line = token.start[0]
            yield line, f"{before} {text}" if follows else text
            before = text
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, " ".join(node.value.split())


def riddles(tree):
    """Yield line and text of each docstring that begins with a question word."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented):
            text = ast.get_docstring(node) or ""
            if RIDDLE.match(text):
                yield getattr(node, "lineno", 1), text.partition("\n")[0]


@pytest.mark.thorough
@pytest.mark.parametrize("name", CHECKED)
def test_a_module_is_written_in_plain_english(name):
    source = MODULES[name].read_text("utf-8")
    found = [
        f"{name}:{line}: {match[0]!r} in {text!r}"
        for line, text in texts(source)
        for match in BANNED.finditer(text)
    ]
    found += [f"{name}:{line}: {text!r}" for line, text in riddles(ast.parse(source))]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        '"""It knows nothing of calls."""',
        '"""Module."""\n# It knows\n# nothing of calls.',
        'def f():\n    """What comes of it."""',
        'msg = "name must be a text "\\\n    "that is not empty"',
    ],
    ids=["docstring", "comment of two lines", "riddle", "message of two parts"],
)
def test_a_banned_phrase_is_found(source):
    found = [*(x for _, x in texts(source) if BANNED.search(x))]
    assert found or [*riddles(ast.parse(source))]
