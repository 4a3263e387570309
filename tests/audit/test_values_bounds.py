"""Values that would be too large to write out are not known."""

import ast

import pytest

from retrykit.audit._module_reader import read_module
from retrykit.audit._project import Project
from retrykit.audit._values import UNKNOWN, Reference, evaluate


@pytest.mark.parametrize(
    "text",
    [
        "999999999 ** 999999999",
        "2 ** 499 * 2 ** 499 * 2 ** 499",
        "1e400",
        "1e300 * 1e300",
        "(-8) ** 0.5",
        "1 / 0",
        f"1{'0' * 400}",
        "...",
    ],
)
def test_a_number_that_is_none_is_not_known(text):
    tree = ast.parse(text, mode="eval")
    assert evaluate(tree.body, Reference) is UNKNOWN


@pytest.mark.parametrize(
    "form", ["({0}, {0})", "{0} + {0}", "f({0}, {0})", "{{{0}: {0}}}"]
)
@pytest.mark.parametrize("inside", [True, False])
def test_what_doubles_with_each_name_is_not_known(form, inside):
    lines = [f"x{n + 1} = {form.format(f'x{n}')}" for n in range(60)]
    lines += ["from tenacity import retry", "y = retry(stop=x60)", "x0 = (1, 2)"]
    indent = "  " if inside else ""
    body = "\n".join(f"{indent}{each}" for each in lines)
    text = f"def g():\n{body}" if inside else body
    [site] = Project([read_module(ast.parse(text), "a.py", "a", "")]).sites()
    assert site.behavior.calls is None
