"""The libraries, programs and abilities that parts of the suite need, by their files.

Everything else needs only the extra `test`. If something is missing, its part is
not collected, which ``conftest.py`` reports at the end of the run. A single test says
what it needs by ``@pytest.mark.needs("threads")``, and is skipped.
"""

import os
import shutil
import sys
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement

__all__ = ["PARTS", "installed", "libraries", "missing", "needs", "program"]
__all__ += ["skip_without"]

CLIENTS = "aiohttp httpx httpx2 requests urllib3"
SQL = "asyncpg psycopg pymysql sqlalchemy"
SDKS = "anthropic azure.core boto3 botocore google.api_core google.genai kubernetes"
SDKS += " openai requests stripe urllib3"
BROWSER = "selenium chromium chromedriver"

PARTS = {
    "tests/audit/test_changes.py": "git",
    "tests/audit/test_sarif_schema.py": "pydantic_sarif",
    "tests/_internal/test_processes.py": "processes",
    "tests/audit/test_scan.py": "processes",
    "retrykit/integrations/aio_pika.py": "aio_pika",
    "retrykit/integrations/aiohttp.py": "aiohttp",
    "retrykit/integrations/anthropic.py": "anthropic",
    "retrykit/integrations/azure_core.py": "azure.core",
    "retrykit/integrations/botocore.py": "botocore",
    "retrykit/integrations/google_api_core.py": "google.api_core requests urllib3",
    "retrykit/integrations/google_genai.py": "google.genai",
    "retrykit/integrations/kubernetes.py": "kubernetes urllib3",
    "retrykit/integrations/openai.py": "openai",
    "retrykit/integrations/stripe.py": "stripe",
    # All SDKs, through one table.
    "tests/_support/sdk_clients.py": SDKS,
    "tests/integrations/test_sdk*": f"{SDKS} cryptography",
    "tests/integrations/test_sdk_google_genai.py": "aiohttp httpx httpx2",
    "tests/integrations/test_sdk_retries.py": "pymongo redis",
    "tests/integrations/test_timeouts_of_*": f"{CLIENTS} botocore openai redis",
    "tests/originals/pictures.py": "matplotlib",
    "tests/_support/tls_server.py": "cryptography",
    "tests/integrations/*aiohttp*": "aiohttp",
    "tests/_support/*aiohttp*": "aiohttp",
    "retrykit/integrations/aiokafka.py": "aiokafka",
    "tests/integrations/test_aiokafka.py": "aiokafka",
    "retrykit/integrations/airflow.py": "airflow",
    "tests/integrations/test_airflow.py": "airflow",
    "examples/coming_from_backoff.py": "backoff",
    "retrykit/simulate/_arrays.py": "numpy",
    "retrykit/simulate/_delay_arrays.py": "numpy",
    "tests/simulate/test_arrays.py": "numpy",
    "retrykit/integrations/asyncpg.py": "asyncpg",
    "retrykit/integrations/celery/*": "celery",
    "tests/integrations/*celery*": "celery",
    "tests/_support/*celery*": "celery",
    "retrykit/config/_foreign/_hcl.py": "hcl2",
    "tests/config/foreign/*": "hcl2 yaml",
    "retrykit/integrations/confluent_kafka.py": "confluent_kafka",
    "tests/integrations/test_confluent_kafka.py": "confluent_kafka",
    "retrykit/integrations/dbos/*": "dbos",
    "retrykit/integrations/django.py": "django",
    "tests/integrations/test_django*": "django psycopg pymysql postgres mariadbd",
    "tests/integrations/*dbos*": "dbos",
    "tests/_support/*dbos*": "dbos",
    "examples/durable_hostname_check.py": "dbos",
    "tests/as_installed/test_job_commands.py": "dbos",
    "retrykit/integrations/grpc/*": "grpc",
    "tests/integrations/*grpc*": "grpc",
    "tests/_support/*grpc*": "grpc",
    "retrykit/integrations/httpx.py": "httpx",
    "retrykit/integrations/httpx2.py": "httpx2",
    "tests/integrations/test_httpx2*": "httpx httpx2",
    "tests/integrations/test_httpx*": "httpx",
    "examples/observed_service.py": (
        "httpx opentelemetry opentelemetry.sdk prometheus_client"
    ),
    "examples/surviving_a_rate_limit.py": "httpx",
    "examples/upload_once.py": "httpx",
    "retrykit/analysis/charts.py": "matplotlib",
    "tests/analysis/test_charts.py": "matplotlib",
    "retrykit/analysis/simulation_charts.py": "matplotlib",
    "tests/analysis/test_simulation_charts.py": "matplotlib",
    "retrykit/integrations/opentelemetry/*": "opentelemetry",
    "tests/integrations/test_opentelemetry*": "opentelemetry opentelemetry.sdk",
    "tests/integrations/test_opentelemetry_exporters.py": (
        "httpx opentelemetry.exporter.otlp"
    ),
    "tests/_support/telemetry_collector.py": "opentelemetry opentelemetry.sdk",
    "retrykit/integrations/procrastinate/*": "procrastinate",
    "tests/integrations/*procrastinate*": "procrastinate",
    "tests/_support/*procrastinate*": "procrastinate",
    "retrykit/integrations/prometheus.py": "prometheus_client",
    "tests/integrations/test_prometheus*": "prometheus_client",
    "tests/integrations/test_prometheus_documents.py": "prometheus_client yaml",
    "tests/_support/telemetry_errors.py": "opentelemetry prometheus_client",
    "retrykit/integrations/pika.py": "pika",
    "tests/integrations/test_rabbitmq.py": "aio_pika celery pika rabbitmq-server epmd",
    "retrykit/integrations/pymongo.py": "pymongo",
    "tests/integrations/test_pymongo.py": "pymongo",
    "tests/_support/mongo_server.py": "pymongo",
    "retrykit/integrations/psycopg.py": "psycopg",
    "retrykit/integrations/pymysql.py": "pymysql",
    "retrykit/integrations/redis/*": "redis",
    "tests/integrations/*redis*": "redis redis-server",
    "tests/_support/*redis*": "redis redis-server",
    "retrykit/integrations/requests.py": "requests urllib3",
    "tests/integrations/test_repeated_clients.py": "aiohttp httpx requests urllib3",
    "tests/integrations/test_requests.py": "requests urllib3",
    "tests/integrations/test_smtplib.py": "aiosmtpd",
    "retrykit/integrations/sqlalchemy.py": "sqlalchemy",
    "retrykit/integrations/sentry.py": "sentry_sdk",
    "tests/integrations/test_sentry.py": "httpx sentry_sdk starlette",
    "tests/integrations/test_sentry_jobs.py": "celery sentry_sdk starlette",
    "tests/_support/sentry_events.py": "sentry_sdk starlette",
    "tests/integrations/test_observability_page.py": (
        "httpx opentelemetry opentelemetry.sdk prometheus_client"
    ),
    "examples/coming_from_stamina.py": "stamina",
    "tests/integrations/test_structlog.py": "structlog",
    "tests/integrations/test_loguru.py": "loguru",
    "retrykit/integrations/temporal.py": "temporalio",
    "tests/integrations/test_temporal.py": "temporalio",
    "examples/coming_from_tenacity.py": "tenacity",
    "tests/test_coming_from_tenacity.py": "tenacity",
    "tests/test_coming_from_backoff.py": "backoff",
    "tests/integrations/test_hooks_of_tenacity.py": "tenacity",
    "tests/integrations/test_hooks_of_backoff.py": "backoff",
    "tests/test_coming_from_stamina.py": "stamina",
    "retrykit/integrations/_urllib3_retry.py": "urllib3",
    "retrykit/integrations/urllib3.py": "urllib3",
    "tests/integrations/test_urllib3*": "urllib3",
    "tests/integrations/test_urllib3_policy_retry.py": "requests urllib3",
    "tests/migrate/test_urllib3_programs.py": "requests urllib3",
    "tests/integrations/test_coming_from_urllib3.py": "requests urllib3",
    "tests/integrations/test_coming_from_httpx_retries.py": "httpx httpx_retries",
    "tests/integrations/test_admission.py": "aiohttp httpx requests urllib3",
    "tests/integrations/test_telemetry_stages.py": "opentelemetry prometheus_client",
    "tests/integrations/test_task_queues.py": "celery redis redis-server rq",
    "tests/integrations/test_web_frameworks.py": "django fastapi httpx starlette",
    # All clients, through one table.
    "tests/_support/http_clients.py": CLIENTS,
    "tests/_support/stream_clients.py": CLIENTS,
    "tests/integrations/test_client_errors.py": CLIENTS,
    "tests/integrations/test_http_*": f"{CLIENTS} grpc",
    "tests/integrations/*mountebank*": "mb",
    "tests/_support/*mountebank*": "mb",
    "tests/integrations/test_soak.py": f"{CLIENTS} grpc",
    # SQL databases, by all drivers.
    "tests/_support/sql_errors.py": f"{SQL} django",
    "tests/_support/sql_drivers.py": SQL,
    "tests/integrations/test_sqlalchemy_sqlite.py": "aiosqlite sqlalchemy",
    "tests/integrations/test_sql_errors.py": f"{SQL} aiosqlite psycopg_pool",
    "tests/integrations/test_sql_mariadb.py": f"{SQL} mariadbd",
    "tests/integrations/test_sql_postgres.py": f"{SQL} postgres psycopg_pool",
    # It is translated, and not imported.
    "tests/as_installed/project/src/client.py": "tenacity",
    "retrykit/migrate/*": "libcst",
    "retrykit/migrate/_tenacity/*": "libcst",
    "tests/benchmarks/test_migrated*.py": "libcst",
    "tests/fuzz/migrations.py": "libcst",
    "tests/migrate/*": "backoff libcst retrying stamina tenacity",
    # Python in a browser has neither these libraries nor these abilities.
    "retrykit/testing/_trio_backend.py": "trio",
    "tests/config/test_json_schema.py": "jsonschema",
    "tests/testing/test_pytest_plugin.py": "pytest_trio",
    "tests/testing/test_strategies.py": "speed",
    "tests/as_installed/*.py": "processes",
    "tests/budgets/test_forks.py": "processes",
    "tests/budgets/test_threads.py": "threads",
    "tests/limits/test_forks.py": "processes",
    # All integrations that have a library.
    "tests/test_errors_of_integrations.py": (
        f"{CLIENTS} {SQL} celery dbos django grpc matplotlib opentelemetry "
        "procrastinate prometheus_client redis temporalio"
    ),
    # An app of each engine.
    "tests/_cli/test_jobs.py": "celery dbos procrastinate",
    # The HTML report, in a browser.
    "tests/_support/chromium.py": BROWSER,
    "tests/site/search.py": BROWSER,
    "tests/site/try_it.py": BROWSER,
    "tests/analysis/test_html_report.py": BROWSER,
    "tests/analysis/test_html_report_answers.py": BROWSER,
    "tests/analysis/test_html_report_appearance.py": BROWSER,
    "tests/analysis/test_html_report_numbers.py": BROWSER,
    "tests/analysis/test_html_report_errors.py": BROWSER,
    "tests/analysis/test_html_report_outage.py": BROWSER,
    "tests/analysis/test_stages.py": BROWSER,
    # The scripts of the HTML report, without a browser.
    "tests/_support/page_scripts.py": "node",
    "tests/analysis/test_page_address.py": "node",
    "tests/analysis/test_page_answers.py": "node",
    "tests/analysis/test_page_simulation.py": "node",
    # Durable jobs, on servers that are killed.
    "tests/engines": (
        "celery dbos procrastinate psycopg redis "
        "redis-server rabbitmq-server epmd postgres"
    ),
}
"""The needs of the files of each pattern, by name."""

PROGRAMS = {
    *("chromedriver", "chromium", "epmd", "git", "mariadbd", "mb", "node"),
    *("postgres", "rabbitmq-server", "redis-server"),
}
"""The needs that are programs."""

ABILITIES = {
    *("deep recursion", "processes", "signals"),
    *("sockets", "speed", "symbolic links", "threads"),
}
"""The needs that are abilities of the platform, none of which a browser has.

All others are libraries."""


# Debian keeps these off the PATH, or has a wrapper of the same name there.
_SERVERS = [
    *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True),
    Path("/usr/lib/rabbitmq/bin"),
    Path("/usr/sbin"),
]


def program(name):
    """Return the path of a program, or None if it is not installed."""
    folders = [*map(str, _SERVERS), *os.get_exec_path()]
    return shutil.which(name, path=os.pathsep.join(folders))


@cache
def installed(name):
    """Return whether a library or a program is installed, or the platform able."""
    if name in ABILITIES:
        return sys.platform != "emscripten"
    try:
        return (program if name in PROGRAMS else find_spec)(name) is not None
    except ModuleNotFoundError:
        # The package that a module would be in.
        return False


def needs(path):
    """Return the names of the libraries and programs that a file needs."""
    path = Path(path)
    text = f"/{path.as_posix()}"
    wanted = (
        names
        for part, names in PARTS.items()
        # A pattern is seldom needed, and slow.
        if (path.match(part) if "*" in part else text.endswith(f"/{part}"))
    )
    return {name for names in wanted for name in names.split()}


@cache
def libraries(extra):
    """Return the names of the needs that an extra of retrykit installs."""
    # Not before pytest has begun, which rewrites the modules of its plugins.
    from retrykit._internal.distribution import NAME

    requirements = map(Requirement, metadata.requires(NAME))
    paths = {
        str(path)
        for each in requirements
        if each.marker and each.marker.evaluate({"extra": extra})
        for path in metadata.files(each.name)
    }
    every = {name for names in PARTS.values() for name in names.split()} - PROGRAMS
    return {
        name
        for name in every
        if any(path.startswith(f"{name.replace('.', '/')}/") for path in paths)
    }


def missing(path=None):
    """Return the needs of a file, or of all files, that are not installed."""
    every = {name for names in PARTS.values() for name in names.split()}
    return sorted(
        name for name in (needs(path) if path else every) if not installed(name)
    )


def skip_without(*names):
    """Skip the running test unless all of these are installed."""
    for name in names:
        if not installed(name):
            pytest.skip(f"needs {name}")
