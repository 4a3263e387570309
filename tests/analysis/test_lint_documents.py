"""What the linter says of the presets, and of the policies in the documents."""

import ast
import contextlib
import io

import pytest

from retrykit import Policy, policy_of, presets
from retrykit.analysis.lint import check
from tests._support.documents import PAGES, blocks, page_id

# They retry everything for days, as their originals do in a job engine.
JOBS = {"retries-every-exception", "call-outlives-process"}
WARNINGS = {
    "dramatiq": JOBS,
    "sidekiq": JOBS,
    "zizq": JOBS,
    "hostname_verification": {"no-jitter", "call-outlives-process"},
    "temporal": {"unbounded", "no-jitter", "retries-every-exception"},
    "tenacity_default": {"unbounded", "retries-at-once", "retries-every-exception"},
}
PRESETS = [name for name in presets.__all__ if callable(getattr(presets, name))]


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_has_only_the_warnings_that_its_original_deserves(name):
    found = {finding.rule for finding in check(getattr(presets, name)())}
    assert found == WARNINGS.get(name, set())


def names_of(page):
    """Return what the definitions of a page define, as far as they can be run."""
    names = {"__name__": "page"}
    for language, code in blocks(page):
        if language != "python":
            continue
        for node in ast.parse(code).body:
            part = compile(ast.Module([node], []), str(page), "exec")
            # Observers of the process would stay.
            if isinstance(node, DEFINITIONS) and "observe(" not in ast.unparse(node):
                # Some need libraries, or servers.
                with contextlib.suppress(Exception), QUIET:
                    exec(part, names)  # noqa: S102  our own text
    return names


DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS += (ast.ClassDef, ast.Assign)
QUIET = contextlib.redirect_stdout(io.StringIO())

# The libraries retry by themselves; a call within a request is made once; the delays of
# a durable job; the same delays as those of another library; a time that the rules do
# not see; and delays of none, so that the example takes no time.
IN_PAGES = {
    "README.md": set(),
    "docs/policies.md": {"retries-at-once"},
    "docs/migrating.md": {"no-jitter", "unbounded"},
    "docs/transient_errors.md": {"library-retries-too"},
    "docs/web_frameworks.md": {"never-retries"},
    "docs/durable.md": {"call-outlives-process"},
}


def policies(names):
    for value in names.values():
        if isinstance(value, Policy):
            yield value
        elif callable(value):
            with contextlib.suppress(Exception):
                yield policy_of(value)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_the_examples_of_a_page_have_no_warning_without_a_reason(page):
    found = {x.rule for policy in policies(names_of(page)) for x in check(policy)}
    assert found <= IN_PAGES.get(page_id(page), set())


def test_policies_of_pages_are_found():
    assert len([*policies(names_of(PAGES[0]))]) > 3
