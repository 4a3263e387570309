"""What the linter says of the presets, and of the policies in the documents."""

import pytest

from retrykit import presets
from retrykit.analysis.lint import check
from tests._support.documents import PAGES, ROOT, marks_of, page_id
from tests._support.new_process import run_python

# They retry everything for days, as their originals do in a job engine.
JOBS = {"retries-every-exception", "call-outlives-process"}
WARNINGS = {
    "finagle": {"reserve-of-each-process"},
    "dramatiq": JOBS,
    "sidekiq": JOBS,
    "zizq": JOBS,
    "hostname_verification": {"no-jitter", "call-outlives-process"},
    "azure_core": {"no-jitter"},
    "elastic_transport": {"retries-at-once", "cap-never-reached"},
    "stamina": {"capped-jitter"},
    "urllib3": {"retries-at-once", "cap-never-reached", "too-many-attempts"},
    "temporal": {"unbounded", "no-jitter", "retries-every-exception"},
    "tenacity_default": {"unbounded", "retries-at-once", "retries-every-exception"},
    "aiohttp_retry": {"no-jitter"},
    "backoff_expo": {"unbounded"},
    "dbos_step": {"no-jitter"},
    "httpx_retries": {"retries-at-once", "cap-never-reached", "too-many-attempts"},
    "huey": {"never-retries"},
    "procrastinate": {"unbounded", "retries-at-once", "retries-every-exception"},
    "redis_py": {"too-many-attempts"},
    "requests": {"never-retries"},
    "rq": {"retries-at-once"},
    "taskiq": {"no-jitter"},
    "airflow": {"never-retries"},
    "argo": {"retries-every-exception", "no-jitter", "too-many-attempts"},
    "apt": {"no-jitter"},
    "axios_retry": {"retries-at-once"},
    "bullmq": {"no-jitter"},
    "cloud_tasks": JOBS | {"no-jitter"},
    "curl": {"no-jitter"},
    "kubernetes": {"unbounded", "no-jitter", "retries-every-exception"},
    "ky": {"no-jitter"},
    "node_retry": {"no-jitter"},
    "npm": {"no-jitter"},
    "oban": JOBS,
    "p_retry": {"no-jitter"},
    "pip": {"no-jitter"},
    "prefect": {"never-retries"},
    "step_functions": {"no-jitter"},
    "systemd": {"unbounded", "no-jitter", "retries-every-exception"},
    "undici": {"no-jitter"},
    "wget": {"no-jitter"},
}
PRESETS = [name for name in presets.__all__ if callable(getattr(presets, name))]


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_has_only_the_warnings_that_its_original_deserves(name):
    found = {finding.rule for finding in check(getattr(presets, name)())}
    assert found == WARNINGS.get(name, set())


# Run in a process of its own, since an example may register tasks and observers.
CHECK = """
import ast, contextlib, io, sys
from pathlib import Path

from retrykit import Policy, policy_of
from retrykit.analysis.lint import check
from tests._support.documents import blocks

names = {"__name__": "page"}
code = [code for language, code in blocks(Path(sys.argv[1])) if language == "python"]
for node in ast.parse("\\n".join(code)).body:
    definitions = ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef
    if isinstance(node, (*definitions, ast.ClassDef, ast.Assign)):
        # Some need libraries, or servers.
        with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
            exec(compile(ast.Module([node], []), sys.argv[1], "exec"), names)
for name, value in names.items():
    with contextlib.suppress(Exception):
        policy = value if isinstance(value, Policy) else policy_of(value)
        print(name, *(finding.rule for finding in check(policy)))
"""


def rules_by_policy(page, folder):
    """Return the rules that warn of each policy that a page defines, by its name."""
    done = run_python(CHECK, folder, str(page), PYTHONPATH=str(ROOT))
    assert done.code == 0, done.err
    lines = [line.split() for line in done.out.splitlines()]
    return {name: {*rules} for name, *rules in lines}


# The libraries retry by themselves; a call within a request is made once; the delays of
# a durable job; the same delays as those of another library; a time that the rules do
# not see; delays of none, so that the example takes no time; and what is compared in
# simulations, such as a budget that does not survive ten processes. Pages of patterns
# also show what to avoid.
IN_PAGES = {
    "README.md": set(),
    "docs/policies.md": {"retries-at-once"},
    "docs/migrating.md": {"no-jitter", "unbounded"},
    "docs/transient_errors.md": {"library-retries-too"},
    "docs/web_frameworks.md": {"never-retries"},
    "docs/durable.md": {"call-outlives-process"},
    "docs/how_to/assert_delays.md": {"no-jitter"},
    "docs/how_to/circuit_breaker.md": {"breaker-without-timeout"},
    "docs/how_to/different_waits.md": {"no-jitter"},
    "docs/how_to/fall_back_to_a_second_provider.md": {"breaker-without-timeout"},
    "docs/how_to/read_limits_from_the_environment.md": {
        "delays-never-used",
        "max-attempts-unreachable",
    },
    "docs/how_to/retry_an_openai_call.md": {"library-retries-too"},
    "docs/how_to/retry_boto3.md": {"library-retries-too"},
    "docs/how_to/stop_after_a_time.md": {"no-jitter", "too-many-attempts"},
    "docs/how_to/stop_on_shutdown.md": {"call-outlives-process"},
    "docs/patterns/circuit_breaker.md": {"breaker-without-timeout", "retries-at-once"},
    "docs/patterns/durable_jobs.md": {"call-outlives-process"},
    "docs/patterns/nested_retries.md": {"retries-at-once"},
    "docs/patterns/retry_budget.md": {"retries-at-once"},
    "docs/tutorial.md": {"call-outlives-process", "retries-at-once"},
    "docs/simulation.md": {
        "never-retries",
        "reserve-of-each-process",
        "retries-at-once",
    },
}


@pytest.mark.needs("processes")
@pytest.mark.parametrize(
    "page",
    [pytest.param(each, marks=marks_of(page_id(each))) for each in PAGES],
    ids=page_id,
)
def test_the_examples_of_a_page_have_no_warning_without_a_reason(page, tmp_path):
    found = set().union(*rules_by_policy(page, tmp_path).values())
    assert found <= IN_PAGES.get(page_id(page), set())


@pytest.mark.needs("processes")
def test_policies_of_pages_are_found(tmp_path):
    assert len(rules_by_policy(ROOT / "docs/policies.md", tmp_path)) > 3
