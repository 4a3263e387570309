"""Values that are read from expressions, and sent between processes."""

import ast
import pickle

import pytest

from retrykit.audit._module_reader import read_module
from retrykit.audit._project import Project
from retrykit.audit._values import UNKNOWN, Function, Operation, Reference, evaluate

VALUES = {
    "not True": False,
    "not x": UNKNOWN,
    "-x": UNKNOWN,
    "3 if x else 1": Operation("or", 3, 1),
    "x or y or 2": Operation("or", Reference("x"), 2),
    "await 3": 3,
    "lambda e: e.status in CODES or 'again'": Function(
        frozenset(["e", "status", "CODES", "again"])
    ),
    "yield": UNKNOWN,
    "*x": UNKNOWN,
}


@pytest.mark.parametrize(("text", "expected"), VALUES.items(), ids=VALUES)
def test_an_expression_has_a_value(text, expected):
    source = f"async def f(): return [{text}]" if text != "yield" else "x = (yield)"
    node = ast.parse(source).body[0]
    expression = node.value if text == "yield" else node.body[0].value.elts[0]
    assert evaluate(expression, Reference) == expected


def test_no_expression_is_the_value_none():
    assert evaluate(None, Reference) is None


def test_what_is_sent_to_another_process_stays_one_object():
    sent = pickle.dumps([UNKNOWN, Reference("x.y"), Reference("x.y")])
    value, name, other = pickle.loads(sent)  # noqa: S301  our own
    assert value is UNKNOWN
    assert repr(value) == "?"
    assert name is other


PACKAGE = {
    "p.limits": "TIMES = 3",
    "p.deep": "",
    "p.deep.a": """
from ..limits import TIMES
from .. import limits
from tenacity import retry, stop_after_attempt as at_most

@retry(stop=at_most(TIMES))
def f(): ...
@retry(stop=at_most(limits.TIMES))
def g(): ...
""",
}


def test_relative_imports_lead_to_other_modules():
    modules = [
        read_module(ast.parse(text), f"{name}.py", name, name.rpartition(".")[0])
        for name, text in PACKAGE.items()
    ]
    sites = [*Project(modules).sites()]
    assert [each.behavior.calls for each in sites] == [3, 3]
