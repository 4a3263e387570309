"""The examples ``coming_from_*.py`` do the same with the other library and retrykit."""

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests._support import required
from tests._support.side_by_side import FOLDER, draw, load, run

EXAMPLES = {x.stem.split("_")[-1]: x for x in sorted(FOLDER.glob("coming_from_*.py"))}
INSTALLED = [name for name, path in EXAMPLES.items() if not required.missing(path)]
USAGES = {
    f"{name}, {usage.title}": usage
    for name in INSTALLED
    for usage in load(f"coming_from_{name}").USAGES
}
TABLES = (Path(__file__).parents[1] / "docs" / "migrating.md").read_text("utf-8")


@pytest.fixture(autouse=True)
def default_hooks_of_stamina():
    yield
    if instrumentation := sys.modules.get("stamina.instrumentation"):
        instrumentation.set_on_retry_hooks(None)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("usage", USAGES.values(), ids=USAGES)
def test_both_sides_have_the_same_calls_waits_and_outcome(usage, share):
    with draw(share):
        before = run(usage.before, usage.script)
        after = run(usage.after, usage.script)
    assert (after.calls, after.outcome) == (before.calls, before.outcome)
    # These delays have the same bounds and another distribution, as the example says.
    differs = usage.title == "retry_error_callback" and share == 0.5
    assert (after.waits == pytest.approx(before.waits)) is not differs


@pytest.mark.parametrize("name", EXAMPLES)
def test_without_the_library_retrykit_runs_alone(name):
    hide = f"import runpy, sys; sys.modules[{name!r}] = None; "
    hide += f"sys.path.insert(0, {str(FOLDER)!r}); "
    hide += f"runpy.run_path({str(EXAMPLES[name])!r}, run_name='__main__')"
    process = subprocess.run(  # noqa: S603  a fixed command
        [sys.executable, "-W", "error", "-c", hide],
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    assert (process.returncode, process.stderr) == (0, "")
    _, *rows, last = process.stdout.splitlines()
    assert last == f"{name} is not installed"
    usages = EXAMPLES[name].read_text("utf-8").count("    Usage(")
    assert len(rows) == process.stdout.count("  retrykit  ") == usages


def parameters(name):
    """Return the names of a library's parameters, and of tenacity's strategies."""
    module = importlib.import_module(name)
    if name == "tenacity":
        functions = [module.Retrying]
        strategies = r"(stop|wait|retry)_(?!base$|never$)\w+|sleep_\w+|\w+_log"
        names = {each for each in dir(module) if re.fullmatch(strategies, each)}
    elif name == "backoff":
        waits = [module.expo, module.fibo, module.constant, module.runtime]
        functions = [module.on_exception, module.on_predicate, *waits]
        names = {each.__name__ for each in functions}
    else:
        functions, names = [module.retry], set()
    signatures = (inspect.signature(each) for each in functions)
    names = names.union(*(each.parameters for each in signatures))
    # These are named by their values.
    return names - {"retry", "wait_gen", "exception", "wait_gen_kwargs"}


@pytest.mark.parametrize("name", INSTALLED)
def test_every_parameter_has_a_row_in_the_document(name):
    section = TABLES.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    names = parameters(name)
    assert {each for each in names if not re.search(rf"\b{each}\b", section)} == set()
    assert len(names) >= 7
