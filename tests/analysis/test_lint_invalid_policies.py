"""A module with an invalid policy: the others in it are found."""

import sys

import pytest

from retrykit.analysis.lint import discover

SHOP = """\
from __future__ import annotations
from retrykit import Policy, retry

GOOD = Policy(on=OSError)
BAD = Policy(max_elapsed="60")

@retry(max_tries=3)
def first(): ...

@retry(BAD)
def second(): ...

class Client:
    @retry(GOOD)
    def send(self) -> Undefined: ...

    @retry(hedge=3)
    @staticmethod
    @retry(hedge=4)
    def ask(): ...

@retry(on=ConnectionError)
def last(): ...
"""
LATER = {
    "another error": ("1 / 0", "ZeroDivisionError: division by zero"),
    "an exit": ("raise SystemExit(3)", "SystemExit: 3"),
    "a name of nothing": ("undefined", None),
}


def found_in(path, text):
    file = path / "shop_of_lint.py"
    file.write_text(text, "utf-8")
    found = discover(str(file))
    return [each.name for each in found.found], found.failures


def test_the_other_policies_of_the_module_are_found(tmp_path):
    names, failures = found_in(tmp_path, SHOP)
    assert names == ["GOOD", "Client.send", "last"]
    places = [(each.module, each.line) for each in failures]
    assert places == [("shop_of_lint", line) for line in (5, 7, 17, 19)]
    assert all(each.reason.startswith("ConfigError: ") for each in failures)
    assert "shop_of_lint" not in sys.modules


@pytest.mark.parametrize(("line", "reason"), LATER.values(), ids=LATER)
def test_another_error_ends_the_module_and_a_missing_name_does_not(
    tmp_path, line, reason
):
    text = f"from retrykit import *\na = Policy(max_attempts=0)\n{line}\nb = Policy()\n"
    names, failures = found_in(tmp_path, text)
    reasons = [each.reason for each in failures]
    assert names == ([] if reason else ["b"])
    assert reasons[1:] == ([reason] if reason else [])


def test_an_interrupt_goes_through(tmp_path):
    text = "import sys\nif hasattr(sys, 'lint_runs_again'): raise KeyboardInterrupt\n"
    text += (
        "sys.lint_runs_again = True\nfrom retrykit import *\nPolicy(max_attempts=0)\n"
    )
    try:
        with pytest.raises(KeyboardInterrupt):
            found_in(tmp_path, text)
    finally:
        del sys.lint_runs_again


def test_an_invalid_policy_in_an_imported_module_is_reported_where_it_is(tmp_path):
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text("")
    bad = "from retrykit import *\nBAD = Policy(max_attempts=0)\nGOOD = Policy()\n"
    (tmp_path / "shop" / "a.py").write_text(bad)
    using = "from retrykit import *\nfrom .a import BAD\nOWN = Policy(on=OSError)\n"
    (tmp_path / "shop" / "b.py").write_text(using)
    found = discover(str(tmp_path / "shop"))
    assert [str(each) for each in found.found] == ["shop.a:GOOD", "shop.b:OWN"]
    places = [(each.module, each.line) for each in found.failures]
    assert places == [("shop.a", 2), ("shop.b", 2)]
