"""Targets: the auditor and lint, with untrusted source code."""

import json
import re
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from retrykit.analysis.lint import discover
from retrykit.audit import RULES, audit
from retrykit.audit._baseline import Baseline
from retrykit.audit._formats import as_data, as_github, as_sarif
from retrykit.audit._page import as_page
from tests.fuzz.target import Target
from tests.fuzz.values import maybe, mutated

__all__ = ["TARGETS", "program"]

_NAMES = ("x", "delay", "attempt", "retries", "self.tries", "f", "e", "time", "LIMIT")
_ERRORS = ("OSError", "Exception", "", "(OSError, x.Y)", "BaseException", "f(3)", "*e")
_LITERALS = ("1", "0.5", "10**9", "'a'", "'5s'", "None", "1e400", "[1, 2, 5]", "{}")
_CALLS = """
    time.sleep({}); f({}); random.uniform(0, {}); min({}, 60); log({}); range({}); {}.y
    retry(stop=stop_after_attempt({}), wait=wait_fixed({})); wait_chain({}, {})
    tenacity.retry(**{}); backoff.on_exception(backoff.expo, {}); dict(a={})
    Retry({}, backoff_factor={}); OpenAI(max_retries={}); functools.partial({})
    boto3.client({}); (lambda: {}); [{} for x in {}]; await {}; -{}; {}; x := {}
    Policy(on=OSError, schedule={}, max_attempts={}); Policy({}={}); {}.replace(on={})
    retrykit.retry(on={}, max_attempts={}); retrykit.retrying(policy={}, **{})
    Policy(on={}, max_elapsed={}, attempt_timeout={}); presets.boto3(); presets.{}({})
    Policy(on=OSError, rules=[Rule(on={}, schedule={})], hint={}, budget={})
    exponential({}).cap({}).full_jitter(); schedules.{}({}); exponential({}) + {}
"""
_CALLS = tuple(each.strip() for each in re.split("[;\n]", _CALLS) if each.strip())
_SIGNS = (" + ", " * ", " ** ", " - ", " // ", " | ", " << ", ", ", " < ")
_SIGNS += (" or ", " and ", " if x else ")
_IMPORTS = (
    *("from tenacity import *", "from tenacity import retry, stop_after_attempt"),
    *("import backoff, tenacity, time, random", "from openai import OpenAI"),
    *("from urllib3 import Retry", "import boto3, functools", "from . import x, retry"),
    *(
        "from a import *",
        "import b",
        "from c import x, f as retry",
        "from c.d import x",
    ),
    "import retrykit; from retrykit import Policy, Rule, presets, schedules",
    "from retrykit.schedules import exponential",
)
_FILES = ("a.py", "b.py", "c/__init__.py", "c/d.py", "a.ipynb")


def _value(random, depth=0):
    if depth > 4 or maybe(random, 0.4):
        return random.choice(_NAMES + _LITERALS)
    if maybe(random, 0.5):
        first, *others = random.choice(_CALLS).split("{}")
        return first + "".join(_value(random, depth + 1) + x for x in others)
    parts = [_value(random, depth + 1) for _ in range(random.randint(2, 3))]
    return f"({random.choice(_SIGNS).join(parts)})"


def _block(random, indent, depth=0):
    lines = []
    for _ in range(random.randint(1, 3)):
        lines += _statement(random, depth)
    return [f"{indent}{line}" for line in lines]


def _statement(random, depth):  # noqa: PLR0911  one for each kind
    kind = random.choice(["value", "assign", "end", "loop", "loop", "try", "def", "if"])
    value = _value(random)
    if depth > 4 or kind == "value":
        return [value]
    if kind == "assign":
        sign = random.choice(["=", "=", "+=", "*=", ": int ="])
        return [f"{random.choice(_NAMES)} {sign} {value}"]
    if kind == "end":
        return [
            random.choice(["break", "continue", f"return {value}", "raise", "pass"])
        ]
    block = _block(random, "  ", depth + 1)
    if kind == "loop":
        heads = (f"while {value}:", "while True:", f"for x in {value}:")
        return [random.choice(heads), *block]
    if kind == "def":
        head = random.choice(["def f(self, x=1):", "async def f():", "class A(Retry):"])
        decorators = [f"@{value}"] if maybe(random, 0.5) else []
        return [*decorators, head, *block]
    if kind == "if":
        return [f"if {value}:", *block]
    error = random.choice(_ERRORS)
    handler = f"except {error}{' as e' * maybe(random, 0.4)}:"
    return ["try:", *block, handler, *_block(random, "  ", depth + 1)]


def _doubled(random):
    """Return assignments whose values, written out, would double with each line."""
    sign = random.choice(["({0}, {0})", "{0} + {0}", "f({0}, {0})", "{0} * {0}"])
    start = random.choice(["x = 'a'", "x = (1, 2)", "x = y", "x0 = 10**9"])
    lines = [
        f"x{n + 1} = {sign.format(f'x{n}')}" for n in range(random.choice([5, 60]))
    ]
    used = f"retry(stop=stop_after_attempt({lines[-1].partition(' ')[0]}))"
    indent = "  " * maybe(random, 0.5)
    head = ["def f():"] if indent else []
    body = [f"{indent}{each}" for each in [start.replace("x =", "x0 ="), *lines, used]]
    return [*head, *body]


def _nested(random):
    """Return code that is nested deeply."""
    count = random.choice([15, 90, 1000])
    form = random.choice(["f({})", "({} or x)", "not {}", "-{}", "{}.y", "{}.retry()"])
    if maybe(random, 0.3):
        head = random.choice(["while retries:", "for x in range(3):", "try:", "if x:"])
        tail = ["except OSError: pass"] if head == "try:" else []
        body = [f"{' ' * n}{head}" for n in range(min(count, 90))]
        ends = [f"{' ' * n}{x}" for n in range(min(count, 90))[::-1] for x in tail]
        return [*body, " " * len(body) + "time.sleep(retry())", *ends]
    if maybe(random, 0.3):
        return ["if x: retry()", *["elif x: pass"] * count]
    before, after = form.split("{}")
    return [f"retry({before * count}x{after * count})"]


def program(random, imports, parts=(1, 2, 10)):
    """Return the text of a program of so many parts, after some of these imports."""
    lines = [each for each in imports if maybe(random, 0.4)]
    choice = random.choice([_block, _block, _block, _doubled, _nested])
    for _ in range(random.choice(parts)):
        lines += choice(random, "") if choice is _block else choice(random)
    text = "\n".join(lines)
    return mutated(random, text) if maybe(random, 0.2) else text


def _content(random, name):
    """Return the content of a file."""
    text = program(random, _IMPORTS)
    if maybe(random, 0.1):
        text += f"  # retrykit: ignore[{random.choice([*RULES, 'x', ','])}]"
    if name.endswith(".ipynb"):
        cells = [{"cell_type": "code", "source": x} for x in text.split("\n\n")]
        text = json.dumps({"cells": cells})
        text = mutated(random, text) if maybe(random, 0.3) else text
    content = text.encode("utf-8", "surrogatepass")
    if maybe(random, 0.05):
        content = random.choice([b"\xef\xbb\xbf", b"# coding: x\n", b"\xff"]) + content
    return content


def _files(random):
    """Return the files of a project, which may import each other."""
    names = random.sample(_FILES, random.choice([1, 1, 2, 3]))
    return {each: _content(random, each) for each in sorted(names)}


@contextmanager
def _written(files):
    with TemporaryDirectory(dir=".") as folder:
        for name, content in files.items():
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        yield folder


def _audit(files):
    with _written(files) as folder:
        return audit([folder])


def _use(report, _random):
    """Write a report in every format."""
    for data in (as_data(report), as_sarif(report, "1")):
        json.dumps(data, allow_nan=False)
    assert all(each.isprintable() for each in as_github(report))
    as_page(report)
    baseline = Baseline.of(report.findings, "known.json")
    assert baseline.remove(report.findings) == []


def _lint(files):
    with _written(files) as folder:
        return discover(Path(folder))


def _check(discovery, _random):
    """Judge each policy that is found."""
    for each in discovery.found:
        assert str(each)
        each.check(processes=3)


TARGETS = (
    Target("audit", 8, _files, _audit, _use),
    Target("lint", 4, _files, _lint, _check),
)
