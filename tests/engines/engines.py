"""The engines under test."""

from tests.engines.celery_engine import (
    CeleryOnClassic,
    CeleryOnQuorum,
    CeleryOnRedis,
)
from tests.engines.dbos_engine import DbosOnPostgres, DbosOnSqlite
from tests.engines.procrastinate_engine import Procrastinate

__all__ = ["ENGINES"]

ENGINES = [
    DbosOnSqlite,
    DbosOnPostgres,
    CeleryOnRedis,
    CeleryOnQuorum,
    CeleryOnClassic,
    Procrastinate,
]
