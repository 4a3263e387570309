"""The rooms of the package and what each may import: read this file first.

A new module goes into the room of its subject. A new import from one room into
another is one more name in a row below. An arrow that points up is an error.
"""

import ast
import re
import sys
from functools import cache
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

import retrykit
from tests._support.new_process import run_python

PACKAGE = Path(retrykit.__file__).parent

# From the bottom up: each room, and the rooms below it that it imports.
ROOMS = {
    "_internal": "",
    "errors": "_internal",
    "schedules": "_internal",
    "migrate": "_internal",
    "_conditions": "_internal",
    "_own_retries": "_internal",
    "_throttling": "",
    "hints": "errors _internal schedules _conditions",
    "budgets": "_internal _conditions",
    "limits": "errors _internal schedules _conditions _throttling",
    "conditions": "_internal _conditions hints",
    "_core": "errors _internal schedules _conditions _own_retries hints budgets "
    "limits conditions",
    "events": "_core",
    "streams": "errors _internal _core",
    "backoff": "_internal schedules _core",
    "simulate": "errors _internal schedules _conditions budgets limits _core",
    "presets": "_internal schedules _conditions _throttling hints budgets limits _core",
    "audit": "errors _internal",
    "config": "errors _internal schedules _conditions hints budgets limits conditions "
    "_core presets",
    "durable": "errors _internal schedules _core",
    "testing": "errors _internal schedules hints _core events",
    "analysis": "errors _internal schedules budgets _conditions _own_retries limits "
    "_core simulate audit config",
    "integrations": "errors _internal schedules _conditions _own_retries _throttling "
    "hints budgets limits _core events config durable",
    "_cli": "errors _internal audit migrate schedules _core simulate config analysis "
    "durable",
}

# Imports that point up, each with its reason; those in functions are late.
UPWARD = {
    # Only for type checkers: an error has the state of its call.
    ("errors", "_core.retry_state"),
    # An error about an unknown name of a package suggests a known one.
    ("_internal.late_modules", "_internal.foreign_names"),
    # Methods of schedules return kinds of schedules, which derive from `Schedule`.
    ("schedules._base", "schedules._composition"),
    ("schedules._base", "schedules._sequences"),
    ("schedules._base", "schedules._transforms"),
    # A hedge alone has the rules of a policy that retries nothing.
    ("_core.hedge", "_core.policy"),
    # Methods of a policy run calls. This one is not late: the first call may be made in
    # the child of a fork, which hangs in an import that another thread had begun.
    ("_core.policy", "_core.drivers"),
    # Rules know the settings that only a policy has; few policies have rules.
    ("_core.settings", "_core.rules"),
    # Methods of a policy read files and variables.
    ("_core.policy", "config._environment"),
    ("_core.policy", "config._files"),
    # A proxy wraps the methods that are bound to it; few programs need one.
    ("_core.wrapping", "_core.proxies"),
}

# Standard modules for input and output, time and chance, and their importers.
DOORS = {
    "random": "simulate._draws",
    "time": "_internal.clocks _internal.late_modules audit._reading "
    "integrations.tenacity._call_states "
    "testing._sleep_guard",
    "asyncio": "_core.task_sends _internal.loop_clock "
    "durable._job_attempt integrations.dbos._job_functions "
    "integrations.dbos._killed_attempts "
    "integrations.procrastinate._serving testing._event_loops testing._fake_clock "
    "testing.pytest_plugin testing._sleep_guard testing._virtual_loop",
    "wrapt": "_core.proxies",
    "ast": "audit migrate._expressions schedules._parsing _cli.modules",
    "tomllib": "audit._settings config._files migrate._width",
}

# A policy and its decision are the same at any time. The clock is read by what runs
# calls, where a date is compared with now, and where recent requests are counted.
READS_THE_CLOCK = {
    "_core.attempt_timeout",
    "_core.blocks",
    "_core.call",
    "_core.common_failures",
    "_core.controller",
    "_core.hedging",
    "_core.ineffective",
    "_core.manual",
    "_core.steps",
    "_core.streams",
    "_core.sync_driver",
    "_core.task_sends",
    "_core.thread_sends",
    "budgets._shared_budgets",
    "limits._adaptive_rate",
    "limits._circuit_breaker",
    "limits._circuit_lease",
    "limits._concurrency",
    "limits._leases",
    "limits._permits",
    "limits._rate",
    "hints._retry_after_header",
    "hints._rate_limit_reset",
}

# The libraries, besides wrapt, that a module or the modules of a package may import.
LIBRARIES = {
    "simulate._arrays": "numpy",
    "simulate._delay_arrays": "numpy",
    "config._foreign._loading": "yaml",
    "config._foreign._hcl": "hcl2 lark",
    "analysis.charts": "matplotlib",
    "analysis.simulation_charts": "matplotlib",
    "_cli": "click rich",
    "migrate": "libcst",
    "integrations.aio_pika": "aio_pika",
    "integrations.aiohttp": "aiohttp yarl",
    "integrations.aiokafka": "aiokafka",
    "integrations.airflow": "airflow",
    "integrations.asyncpg": "asyncpg",
    "integrations.anthropic": "anthropic",
    "integrations.azure_core": "azure",
    "integrations.botocore": "botocore",
    "integrations.celery": "celery kombu",
    "integrations.confluent_kafka": "confluent_kafka",
    "integrations.dbos": "dbos",
    "integrations.django": "django",
    "integrations.google_api_core": "google",
    "integrations.google_genai": "google",
    "integrations.grpc": "grpc",
    "integrations.httpx": "httpx",
    "integrations.httpx2": "httpx2",
    "integrations.opentelemetry": "opentelemetry",
    "integrations.kubernetes": "kubernetes",
    "integrations.openai": "openai",
    "integrations.procrastinate": "procrastinate",
    "integrations.prometheus": "prometheus_client",
    "integrations.pika": "pika",
    "integrations.pymongo": "pymongo",
    "integrations.psycopg": "psycopg",
    "integrations.pymysql": "pymysql",
    "integrations.redis": "redis",
    "integrations.requests": "requests urllib3",
    "integrations.sqlalchemy": "sqlalchemy",
    "integrations.stripe": "stripe",
    "integrations.sentry": "sentry_sdk",
    "integrations.temporal": "temporalio",
    "integrations._urllib3_retry": "urllib3",
    "integrations.urllib3": "urllib3",
    "testing.pytest_plugin": "pytest",
    "testing.strategies": "hypothesis",
    "testing._trio_backend": "trio",
}


def module_name(path):
    name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    return name.removesuffix(".__init__")


# Each is read once, and not while tests are only collected.
@cache
def trees():
    """Return the syntax trees of all modules by their names."""
    return {
        module_name(path): ast.parse(path.read_text("utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def imports_of(name, nodes=None):
    """Yield the absolute names that a module imports, also in its functions."""
    for node in nodes or ast.walk(trees()[name]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: imports are absolute"
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            own = [each for each in full if each.removeprefix("retrykit.") in trees()]
            yield from own or [node.module]


@cache
def imports():
    return {name: {*imports_of(name)} for name in trees()}


@cache
def own_imports():
    # The package itself imports public names on first access.
    return {
        name: {
            each.removeprefix("retrykit.")
            for each in imported
            if each.startswith("retrykit.")
        }
        for name, imported in imports().items()
        if name not in {"__init__", "__main__"}
    }


@cache
def arrows():
    return {
        (name, other)
        for name, others in own_imports().items()
        for other in others
        if name != other
    }


def types_only():
    """Return the arrows of names that only annotations use."""
    return {
        (name, node.module.removeprefix("retrykit."))
        for name, tree in trees().items()
        for block in tree.body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
    }


def room(name):
    return name.split(".")[0]


def test_every_module_is_in_a_room():
    assert {room(name) for name in own_imports()} == set(ROOMS)


def test_rooms_import_only_what_is_below_them():
    below = []
    for name, allowed in ROOMS.items():
        assert set(allowed.split()) <= {*below}, name
        below.append(name)


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_imports_what_its_row_lists(name):
    used = {
        room(other)
        for module, other in arrows() - UPWARD
        if room(module) == name != room(other)
    }
    assert used == set(ROOMS[name].split())


def test_there_are_no_import_cycles():
    graph = {name: set() for name in own_imports()}
    for name, other in arrows() - types_only() - UPWARD:
        # A package imports its own modules, to name what is public.
        if not other.startswith(f"{name}."):
            graph[name].add(other)
    TopologicalSorter(graph).prepare()


def test_every_upward_import_but_one_is_made_in_a_function():
    assert set() == UPWARD - arrows()
    assert {
        (name, other)
        for name, other in UPWARD
        if f"retrykit.{other}" in imports_of(name, trees()[name].body)
    } == {("_core.policy", "_core.drivers")}


@pytest.mark.parametrize("door", DOORS)
def test_standard_modules_are_imported_only_by_the_listed_modules(door):
    users = {
        # All of the auditor reads syntax trees.
        "audit" if door == "ast" and room(name) == "audit" else name
        for name, imported in imports().items()
        if any(each.split(".")[0] == door for each in imported)
    }
    assert users == set(DOORS[door].split())


def test_no_policy_and_no_decision_reads_the_clock():
    below = {"schedules", "_conditions", "hints", "budgets", "limits", "_core"}
    below |= {"presets"}
    found = {
        name
        for name, other in arrows()
        if other == "_internal.clocks" and room(name) in below
    }
    assert found == READS_THE_CLOCK


def test_nothing_but_wrapt_is_needed_at_run_time():
    process_wide = {"retrykit", "wrapt", *sys.stdlib_module_names}
    for name, imported in imports().items():
        own = [LIBRARIES[key] for key in LIBRARIES if f"{name}.".startswith(f"{key}.")]
        found = {each.split(".")[0] for each in imported}
        assert found <= process_wide | {*" ".join(own).split()}, name


class AsyncEraser(ast.NodeTransformer):
    """A program without ``async`` and ``await``."""

    def visit_AsyncFunctionDef(self, node):
        self.generic_visit(node)
        return ast.FunctionDef(**{name: getattr(node, name) for name in node._fields})

    def visit_AsyncWith(self, node):
        self.generic_visit(node)
        block = ast.With(**{name: getattr(node, name) for name in node._fields})
        return ast.copy_location(block, node)

    def visit_AsyncFor(self, node):
        self.generic_visit(node)
        loop = ast.For(**{name: getattr(node, name) for name in node._fields})
        return ast.copy_location(loop, node)

    def visit_If(self, node):
        # What async observers have returned is awaited in one of the two alone.
        if ast.unparse(node.test) == "call.pending":
            return None
        return self.generic_visit(node)

    def visit_Await(self, node):
        return self.visit(node.value)


DRIVERS = ["_core.sync_driver", "_core.async_driver"]


def erased_source(name):
    tree = AsyncEraser().visit(ast.parse(ast.unparse(trees()[name])))
    ignored = (ast.Expr, ast.Import, ast.ImportFrom)
    return [ast.dump(node) for node in tree.body if not isinstance(node, ignored)]


def test_the_sync_and_async_drivers_are_the_same_program():
    sync, awaited = map(erased_source, DRIVERS)
    assert sync == awaited
    assert any("While" in node for node in sync)


def test_the_drivers_differ_only_in_what_they_await():
    sync, awaited = (
        [
            alias.asname or alias.name
            for node in trees()[name].body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        ]
        for name in DRIVERS
    )
    assert sync == awaited


STREAMS = ["_core.streams", "_core.async_streams"]


def unparse_erased(tree):
    return ast.unparse(ast.fix_missing_locations(tree))


def test_the_sync_and_async_streams_are_the_same_program():
    sync, awaited = (
        [
            unparse_erased(AsyncEraser().visit(ast.parse(ast.unparse(node))))
            for node in trees()[name].body
            if getattr(node, "name", "") in {"run_stream", "first_item"}
        ]
        for name in STREAMS
    )
    assert len(sync) == 2
    erased = [re.sub(r"\b(a|__a)(?=next|send|throw|close)", "", x) for x in awaited]
    erased = [x.replace("next__", "__next__") for x in erased]
    erased = [re.sub(r"Async(?=Generator)|Async(?=Iteration)", "", x) for x in erased]
    without_value = [x.replace("return end.value", "return") for x in sync]
    without_value = [x.replace("Iteration as end", "Iteration") for x in without_value]
    assert [x.replace("Any, Any, Any", "Any, Any") for x in without_value] == erased


# Functions that stand beside an async one of the same name after an "a".
TWINS = [
    ("_conditions", "matches_condition"),
    ("_core.result_conditions", "match_result"),
    ("_core.decision", "match_error"),
    ("_core.decision", "match_group"),
    ("_core.decision", "match_members"),
    ("_core.steps", "handle_failure"),
    ("_core.steps", "finish"),
    ("_core.steps", "handle_result"),
    ("_core.steps", "judge"),
    ("_core.steps", "pause"),
    ("_core.steps", "start"),
    ("_core.steps", "begin"),
    ("_core.steps", "admit"),
    ("_core.manual", "begin"),
    ("_core.hedging", "race"),
    ("_core.hedging", "match"),
    ("_core.manual", "fail"),
    ("_core.manual", "succeed"),
    ("_core.manual", "pause"),
    ("_core.manual", "suspend"),
    ("durable._job_attempt", "fail"),
    ("integrations._http.streams", "read_download"),
    ("integrations._http.streams", "read_events"),
    ("integrations._http.streams", "write_download"),
]


@pytest.mark.parametrize(("module", "name"), TWINS)
def test_a_function_and_its_async_twin_are_one_program(module, name):
    sync, awaited = (
        next(node for node in ast.walk(trees()[module]) if _is_named(node, each))
        for each in (name, f"a{name}")
    )
    # Without the docstring and the signature.
    parts = map(AsyncEraser().visit, awaited.body[1:])
    erased = [ast.unparse(node) for node in parts if node is not None]
    one = [re.sub(r"\ba(\w+)\(", _without_prefix, line) for line in erased]
    one = [line.replace(".wait_async(", ".wait(") for line in one]
    assert one == [ast.unparse(node) for node in sync.body[1:]]


def _is_named(node, name):
    return not isinstance(node, ast.alias) and getattr(node, "name", "") == name


def _without_prefix(called):
    twins = {name for _, name in TWINS} | {"release_result", "read_answer"}
    twins |= {"deposit_safely", "use_fallback", "wait_delay", "withdraw_safely"}
    twins |= {"release_all", "withdraw_hedge"}
    return f"{called[1]}(" if called[1] in twins else called[0]


GIVES_UP = """
import sys
from retrykit import retry

modules = []

def profile(frame, event, _):
    name = frame.f_globals.get("__name__", "")
    if event == "call" and name.startswith("retrykit."):
        modules.append(name)

@retry(schedule=[0, 0], max_attempts=2)
def fetch():
    return 1 / 0

for profiled in (None, profile):
    sys.setprofile(profiled)
    try:
        fetch()
    except ZeroDivisionError:
        pass
    finally:
        sys.setprofile(None)
print(*modules)
"""


def test_a_call_that_gives_up_uses_few_modules(tmp_path):
    """Two failures, then the end; ``python -m benchmarks.path -v`` lists the calls."""
    ended = run_python(GIVES_UP, tmp_path)
    # As installed, each retry is logged.
    assert ended.err.count("retrying fetch in ") == 2
    modules = ended.out.split()
    assert len({*modules}) <= 20
    assert sum(a != b for a, b in pairwise(modules)) <= 51


@cache
def lazy():
    """Return the packages that import a name when it is asked for."""
    return {
        name
        for name, tree in trees().items()
        if any(getattr(node, "id", "") == "lazy_exports" for node in ast.walk(tree))
    }


@pytest.mark.thorough
def test_no_module_reads_a_lazy_package_without_importing_its_names():
    """Until somebody has asked for a name of such a package, `vars` lacks it."""
    found = [
        f"{module}:{node.lineno}"
        for module, tree in trees().items()
        for package in lazy_packages(tree)
        for node in ast.walk(tree)
        if reads_what_is_there(node, package)
    ]
    assert len(lazy()) >= 5
    assert found == []


def lazy_packages(tree):
    """Yield the names that a module has for packages that export lazily."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if in_package(alias.name) in lazy():
                    yield alias.asname or alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if in_package(f"{node.module}.{alias.name}") in lazy():
                    yield alias.asname or alias.name


def in_package(name):
    """Return the key in `trees` of a module of retrykit; another one has none."""
    package, _, rest = name.partition(".")
    return (rest or "__init__") if package == "retrykit" else ""


def reads_what_is_there(node, package):
    """Return whether code reads `vars(package)`, its `__dict__`, or a default."""
    match node:
        case ast.Call(ast.Name("vars"), [value]):
            return ast.unparse(value) == package
        case ast.Call(ast.Name("getattr"), [value, _, _]):
            return ast.unparse(value) == package
        case ast.Attribute(value, "__dict__"):
            return ast.unparse(value) == package
    return False


@pytest.mark.parametrize(
    "code",
    ["vars(schedules)['a']", "getattr(s, 'a', None)", "retrykit.hints.__dict__"],
)
def test_code_that_reads_what_is_there_is_found(code):
    imports = "import retrykit.hints\nfrom retrykit import schedules, schedules as s"
    tree = ast.parse(f"{imports}\n{code}")
    packages = [*lazy_packages(tree)]
    assert [
        node
        for name in packages
        for node in ast.walk(tree)
        if reads_what_is_there(node, name)
    ] != []
