"""The plan of the house: read it first, and add a new module here first."""

import ast
from functools import cache
from pathlib import Path

import pytest

import retrykit

PACKAGE = Path(retrykit.__file__).parent

# From the ground up. A module imports from floors below its own, and from
# modules to the left of it on its own floor.
FLOORS = {
    "words": [
        "errors",
        "redaction",
        "checks",
        "durations",
        "signals",
        "attention",
        "locks",
        "tracebacks",
        "scopes",
        "type_names",
        "notes",
        "inspection",
        "error_conditions",
        "values",
    ],
    "world": ["clocks", "cutoffs"],
    "numbers": [
        "jitter",
        "endless",
        "algebra",
        "combinators",
        "operators",
        "formulas",
        "sequences",
        "schedule_kinds",
        "constructors",
        "parts",
        "expressions",
        "plain",
        "schedules",
    ],
    "history": [
        "reasons",
        "records",
        "fault_log",
        "failures",
        "state",
        "verdicts",
        "events",
    ],
    "description": [
        "elsewhere",
        "conditions",
        "rules",
        "hint",
        "hints.ready",
        "hints.fields",
        "hints.dates",
        "hints.http",
        "hints.resets",
        "hints.pushback",
        "hints.attributes",
        "hints.several",
        "hints.named",
        "hints",
        "budget",
        "timeouts",
        "budgets.exact",
        "budgets.recent",
        "budgets.registry",
        "budgets.costs",
        "budgets.described",
        "budgets.token_bucket",
        "budgets.throttle",
        "budgets.ratio",
        "budgets.stored",
        "budgets",
        "settings",
        "limits",
        "data",
        "systems.aws",
        "systems.clients",
        "systems.ground_truth",
        "systems.queues",
        "systems",
        "named",
        "documents",
        "files",
        "environment",
        "stored",
    ],
    "decision": ["_decide"],
    "drivers": ["_nesting", "_opening", "_book", "_outcomes", "_sync", "_async"],
    "syntax": [
        "callables",
        "bounding",
        "driving",
        "policy",
        "dialects",
        "dressing",
        "decorators",
        "attempts",
        "blocks",
        "backoff",
    ],
    "front door": ["__init__"],
    "leaves": [
        "preview.spreads",
        "preview.delays",
        "preview.bounds",
        "preview.course",
        "preview.draws",
        "preview.windows",
        "preview.caveats",
        "preview",
        "lint.findings",
        "lint.caps",
        "lint.limits",
        "lint.delays",
        "lint.load",
        "lint.rules",
        "lint.sources",
        "lint.imports",
        "lint.written",
        "lint.discovery",
        "lint",
        "documented",
        "kind_schemas",
        "json_schema",
        "status_codes",
        "service_methods",
        "service_config",
        "source",
        "ticks",
        "plot",
        "page.unseen",
        "page.presets",
        "page",
        "cli.terminal",
        "cli.bash",
        "cli.completions",
        "cli.options",
        "cli.flags",
        "cli.targets",
        "cli.policy_options",
        "cli.previews",
        "cli.summary",
        "cli.bars",
        "cli.show",
        "cli.chart",
        "cli.compare",
        "cli.lint_targets",
        "cli.lint",
        "cli.convert",
        "cli.dialects",
        "cli.schema",
        "cli.completion",
        "cli.program",
        "cli",
        "__main__",
        "testing.block",
        "testing.limits",
        "testing.script",
        "testing.history",
        "testing.recording",
        "testing.threads",
        "testing.workers",
        "testing.timeline",
        "testing.real_sleeps",
        "testing.in_asyncio",
        "testing.in_trio",
        "testing.virtual_loop",
        "testing.loops",
        "testing.fake_clock",
        "testing.virtual",
        "testing.drawn",
        "testing.strategies",
        "testing",
        "pytest_plugin",
        "durable.payloads",
        "durable.capabilities",
        "durable.kept",
        "durable.fingerprints",
        "durable.envelope",
        "durable.attempt",
        "durable.staying",
        "durable.jobs",
        "durable.functions",
        "durable.numbered",
        "durable.report",
        "durable",
        "integrations",
        "integrations.logging",
        "integrations.redis.script",
        "integrations.redis.account",
        "integrations.redis.budgets",
        "integrations.redis",
        "integrations.bodies",
        "integrations.parts",
        "integrations.sending",
        "integrations.asked",
        "integrations.httpx",
        "integrations.aiohttp",
        "integrations.urllib3.outcomes",
        "integrations.urllib3.retries",
        "integrations.urllib3",
        "integrations.requests",
        "integrations.grpc.parts",
        "integrations.grpc.calls",
        "integrations.grpc.blocking",
        "integrations.grpc.awaited",
        "integrations.grpc",
        "integrations.celery.settings",
        "integrations.celery.ledger",
        "integrations.celery.sending",
        "integrations.celery.strangers",
        "integrations.celery.wakeups",
        "integrations.celery.task",
        "integrations.celery.reports",
        "integrations.celery",
        "integrations.dbos.settings",
        "integrations.dbos.embedded",
        "integrations.dbos.jobs",
        "integrations.dbos.processes",
        "integrations.dbos.attempts",
        "integrations.dbos.reports",
        "integrations.dbos",
        "integrations.procrastinate.plans",
        "integrations.procrastinate.store",
        "integrations.procrastinate.visits",
        "integrations.procrastinate.settings",
        "integrations.procrastinate.tasks",
        "integrations.procrastinate.reports",
        "integrations.procrastinate",
        "integrations.temporal",
        "integrations.tries",
        "integrations.airflow",
    ],
}

# Every door to the outside has one keeper.
DOORS = {
    "random": {"jitter"},
    "time": {"clocks", "testing.real_sleeps"},
    "asyncio": {
        "clocks",
        "cutoffs",
        "durable.staying",
        "integrations.dbos.jobs",
        "pytest_plugin",
        "testing.in_asyncio",
        "testing.virtual_loop",
    },
    "wrapt": {"dressing"},
    "datetime": {
        "cli.options",
        "cli.show",
        "durable.report",
        "durations",
        "integrations.airflow",
        "integrations.celery.task",
        "integrations.dbos.reports",
        "integrations.procrastinate.reports",
        "integrations.procrastinate.visits",
        "integrations.temporal",
        "preview.course",
        "state",
    },
    "ast": {"expressions", "lint.written"},
    "tomllib": {"documents"},
}

# Who knows what time it is, of those below the drivers: a policy and a decision
# are what they are at any time. Who reads a date must know the time, and who
# counts what happened of late, and what ends an attempt.
TOLD_THE_TIME = {"budgets.ratio", "cutoffs", "hints.http", "hints.resets"}

# What a leaf is for, beside wrapt and the standard library.
LIBRARIES = {
    "cli.bars": {"rich"},
    "cli.bash": {"click"},
    "cli.chart": {"click"},
    "cli.compare": {"click"},
    "cli.completion": {"click"},
    "cli.completions": {"click"},
    "cli.convert": {"click"},
    "cli.dialects": {"click"},
    "cli.lint": {"click", "rich"},
    "cli.lint_targets": {"rich"},
    "cli.options": {"click"},
    "cli.policy_options": {"click"},
    "cli.program": {"click"},
    "cli.schema": {"click"},
    "cli.show": {"click"},
    "cli.terminal": {"rich"},
    "integrations.aiohttp": {"aiohttp"},
    "integrations.airflow": {"airflow"},
    "integrations.celery.ledger": {"celery"},
    "integrations.celery.reports": {"celery", "kombu"},
    "integrations.celery.sending": {"celery", "kombu"},
    "integrations.celery.settings": {"celery"},
    "integrations.celery.strangers": {"celery", "kombu"},
    "integrations.celery.task": {"celery"},
    "integrations.celery.wakeups": {"celery", "kombu"},
    "integrations.dbos.attempts": {"dbos"},
    "integrations.dbos.jobs": {"dbos"},
    "integrations.dbos.processes": {"dbos"},
    "integrations.dbos.reports": {"dbos"},
    "integrations.dbos.settings": {"dbos"},
    "integrations.grpc.awaited": {"grpc"},
    "integrations.grpc.blocking": {"grpc"},
    "integrations.grpc.calls": {"grpc"},
    "integrations.httpx": {"httpx"},
    "integrations.procrastinate.reports": {"procrastinate"},
    "integrations.procrastinate.settings": {"procrastinate"},
    "integrations.procrastinate.store": {"procrastinate"},
    "integrations.procrastinate.tasks": {"procrastinate"},
    "integrations.procrastinate.visits": {"procrastinate"},
    "integrations.redis.budgets": {"redis"},
    "integrations.requests": {"requests", "urllib3"},
    "integrations.temporal": {"temporalio"},
    "integrations.urllib3.outcomes": {"urllib3"},
    "integrations.urllib3.retries": {"urllib3"},
    "plot": {"matplotlib"},
    "pytest_plugin": {"pytest"},
    "testing.in_trio": {"outcome", "trio"},
    "testing.drawn": {"hypothesis"},
    "testing.strategies": {"hypothesis"},
}

# What points up, in a function, since what is above is made of what is below.
LATE = {("algebra", "schedule_kinds")}

HEIGHTS = {
    name: (floor, place)
    for floor, names in enumerate(FLOORS.values())
    for place, name in enumerate(names)
}
LEAVES = len(FLOORS) - 1


@cache
def modules():
    """Return what each module imports, by its name; the package is parsed once."""
    names = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        names[name.removesuffix(".__init__")] = {*imports(parsed(path))}
    return names


def parsed(path):
    return ast.parse(path.read_text("utf-8"))


def imports(tree):
    """Return the modules that a module imports anywhere, also in functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own(name):
    return name.removeprefix("retrykit.") if name.startswith("retrykit.") else None


def test_every_module_has_its_floor():
    assert set(modules()) == set(HEIGHTS)


def test_imports_point_down():
    for name, imported in modules().items():
        used = {*map(own, imported)} & set(HEIGHTS)
        above = {other for other in used if HEIGHTS[other] >= HEIGHTS[name]}
        assert above == {other for user, other in LATE if user == name}, name


def test_nobody_imports_a_leaf():
    for name, imported in modules().items():
        used = {*map(own, imported)} & set(HEIGHTS)
        leaves = {other for other in used if HEIGHTS[other][0] == LEAVES}
        assert leaves == set() or HEIGHTS[name][0] == LEAVES, name


@pytest.mark.parametrize("door", DOORS)
def test_every_door_has_one_keeper(door):
    users = {
        name
        for name, imported in modules().items()
        if any(found.split(".")[0] == door for found in imported)
    }
    assert users == DOORS[door]


def test_no_description_and_no_decision_knows_the_time():
    drivers = list(FLOORS).index("drivers")
    told = {
        name
        for name, imported in modules().items()
        if {"clocks", "cutoffs"} & {*map(own, imported)} and HEIGHTS[name][0] < drivers
    }
    assert told == TOLD_THE_TIME


def test_nothing_but_wrapt_is_needed_at_run_time():
    import sys

    everywhere = {"retrykit", "wrapt", *sys.stdlib_module_names}
    for name, imported in modules().items():
        roots = {found.split(".")[0] for found in imported}
        assert roots <= everywhere | LIBRARIES.get(name, set()), name


def test_only_a_leaf_has_a_library_of_its_own():
    assert {HEIGHTS[name][0] for name in LIBRARIES} == {LEAVES}


class Erased(ast.NodeTransformer):
    """A program without its colour."""

    def visit_AsyncFunctionDef(self, node):
        self.generic_visit(node)
        return ast.FunctionDef(**{name: getattr(node, name) for name in node._fields})

    def visit_Await(self, node):
        return self.visit(node.value)


def program(name):
    tree = Erased().visit(parsed(PACKAGE / f"{name}.py"))
    told = (ast.Expr, ast.Import, ast.ImportFrom)
    return [ast.dump(node) for node in tree.body if not isinstance(node, told)]


def test_the_two_drivers_are_one_program():
    assert program("_async") == program("_sync")
    assert any("While" in node for node in program("_sync"))


def test_the_drivers_differ_only_in_what_they_await():
    names = {
        name: [
            (alias.asname or alias.name)
            for node in parsed(PACKAGE / f"{name}.py").body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        ]
        for name in ("_sync", "_async")
    }
    assert names["_async"] == names["_sync"]
