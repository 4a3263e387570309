"""Stored state of jobs, and the SQL that reads and writes it.

retrykit's table stores the history of each job, under the id of its row in
Procrastinate's table (``row_id``). JSON is passed as text, since connectors differ in
what they return for JSON.
"""

from importlib.resources import files
from typing import Any, Final, LiteralString, NamedTuple

from procrastinate import App

from retrykit._internal.clocks import wall
from retrykit.durable import Envelope
from retrykit.durable._json_payloads import as_json
from retrykit.integrations.procrastinate._sync_async import DualCall, Step

__all__ = [
    "ALL",
    "BEGIN",
    "FIND",
    "METADATA",
    "READ",
    "RELEASE",
    "RESCHEDULE",
    "STARTED",
]
__all__ += ["WRITE", "StoredJob", "aapply_schema", "apply_schema", "envelope_to_json"]
__all__ += ["find_rows", "load", "query", "replace_if_unchanged", "schema"]

METADATA: Final = "retrykit"
"""The argument of a task for its first envelope and its positional arguments."""

STARTED: Final = "retrykit_jobs_started"
"""The index that prevents a job from being started twice."""

_HERE: Final = "retrykit.integrations.procrastinate"

# Every shorter number fits into a bigint.
_MAX_DIGITS: Final = 19

READ: Final = """
SELECT envelope::text, result::text, reason::text, killed, begun
  FROM retrykit_jobs WHERE row_id = %(row_id)s
"""
"""The stored state of a job."""

WRITE: Final = """
INSERT INTO retrykit_jobs AS stored (row_id, envelope, result, reason, killed, begun)
VALUES (%(row_id)s, %(envelope)s::json, %(result)s::json, %(reason)s::json, %(killed)s,
        %(begun)s)
ON CONFLICT (row_id) DO UPDATE
   SET envelope = excluded.envelope, result = excluded.result,
       reason = excluded.reason, killed = excluded.killed, begun = excluded.begun
 WHERE stored.envelope::text IS NOT DISTINCT FROM %(before)s::text
RETURNING least(
    clock_timestamp() + %(left)s * interval '1 second',
    timestamptz '9999-01-01 00:00:00+00'
) AS at
"""
"""Replace the stored state, unless another worker has changed it.

Times come from the database, which also decides when a job is due."""

_ROWS: Final = """
SELECT job.id, job.status::text, job.task_name AS task, job.args::text AS args,
       job.queue_name AS queue, job.priority,
       stored.envelope::text, stored.result::text, stored.reason::text,
       CASE WHEN job.status NOT IN ('todo', 'doing') THEN (
           SELECT max(event.at) FROM procrastinate_events event
            WHERE event.job_id = job.id
              AND event.type IN ('succeeded', 'failed', 'cancelled', 'aborted')
       ) END AS ended
  FROM procrastinate_jobs job LEFT JOIN retrykit_jobs stored ON stored.row_id = job.id
"""

FIND: Final = (
    _ROWS
    + """
 WHERE (job.args -> 'retrykit' IS NOT NULL
        AND job.args -> 'retrykit' -> 'envelope' ->> 'job' = %(job)s)
    OR (job.args -> 'retrykit' IS NULL
        AND job.id = %(row_id)s::bigint AND job.task_name = %(task)s)
 ORDER BY job.id
"""
)
"""All rows of a job, oldest first."""

ALL: Final = (
    _ROWS
    + """
 WHERE job.id > %(after)s
   AND (job.args -> 'retrykit' IS NOT NULL OR stored.row_id IS NOT NULL)
   AND NOT EXISTS (
       SELECT FROM procrastinate_jobs newer
        WHERE newer.args -> 'retrykit' IS NOT NULL
          AND newer.args -> 'retrykit' -> 'envelope' ->> 'job' = coalesce(
              job.args -> 'retrykit' -> 'envelope' ->> 'job',
              job.task_name || '@' || job.id
          )
          AND newer.id > job.id
   )
 ORDER BY job.id LIMIT %(limit)s
"""
)
"""All jobs, each with its latest row, oldest first."""

RESCHEDULE: Final = """
WITH moved AS (
    UPDATE procrastinate_jobs job SET scheduled_at = %(when)s
     WHERE id = %(row_id)s AND status = 'todo'
       AND (SELECT envelope::text FROM retrykit_jobs WHERE row_id = job.id)
           IS NOT DISTINCT FROM %(before)s::text
    RETURNING id
)
INSERT INTO retrykit_jobs (row_id, envelope)
SELECT id, %(envelope)s::json FROM moved
ON CONFLICT (row_id) DO UPDATE SET envelope = excluded.envelope
RETURNING row_id
"""
"""Reschedule a waiting job in both tables, unless it was attempted in the meantime."""

RELEASE: Final = """
WITH released AS (
    UPDATE procrastinate_jobs
       SET status = CASE WHEN abort_requested THEN 'failed' ELSE 'todo' END
                    ::procrastinate_job_status,
           attempts = attempts + 1, scheduled_at = clock_timestamp()
     WHERE id = %(row_id)s AND status = 'doing'
       AND worker_id IS NOT DISTINCT FROM %(worker)s::bigint
    RETURNING id
)
INSERT INTO retrykit_jobs AS stored (row_id, killed)
SELECT id, %(killed)s FROM released
ON CONFLICT (row_id) DO UPDATE
   SET killed = stored.killed + CASE
           WHEN stored.begun OR stored.killed = 0 THEN excluded.killed ELSE 0
       END,
       begun = false
RETURNING row_id AS id
"""
"""Return a job to its queue, unless another worker than the given one has it.

A job that is to be aborted fails instead. Otherwise the row changes as in a retry of
Procrastinate. *killed* is added to how often the job's worker was killed, unless the
repetition of its attempt was still waiting for its turn."""

BEGIN: Final = """
UPDATE retrykit_jobs SET begun = %(begun)s WHERE row_id = %(row_id)s RETURNING row_id
"""
"""Record whether the repetition of an attempt has begun."""


class StoredJob(NamedTuple):
    """The stored state of a job.

    Attributes:
        envelope: The envelope that was stored last, as JSON; None if none was.
        result: Its result, as JSON; None if it has none.
        reason: Why it is dead, as JSON; None if it is not.
        killed: How often its worker was killed since its last attempt ended.
            Count, >= 0.
        begun: Whether the repetition of the interrupted attempt has begun.
    """

    envelope: str | None = None
    result: str | None = None
    reason: str | None = None
    killed: int = 0
    begun: bool = False


def schema() -> str:
    """Return the SQL that creates retrykit's table, and an index on Procrastinate's."""
    return files(_HERE).joinpath("schema.sql").read_text("utf-8")


def apply_schema(app: App) -> None:
    """Create retrykit's table; Procrastinate's own must exist. Safe to repeat.

    This also adds an index to Procrastinate's table; until the index is built, writes
    to that table are blocked.
    """
    sql: Any = schema()
    app.connector.get_sync_connector().execute_query(sql)


async def aapply_schema(app: App) -> None:
    """Create the table from a coroutine, as `apply_schema` does."""
    sql: Any = schema()
    await app.connector.execute_query_async(sql)


def query(app: App, sql: LiteralString, **arguments: Any) -> Step:
    """Return the step that runs a query; its result is a list of rows."""

    def blocking() -> list[dict[str, Any]]:
        connector = app.connector.get_sync_connector()
        return connector.execute_query_all(sql, **arguments)

    return Step(
        blocking, lambda: app.connector.execute_query_all_async(sql, **arguments)
    )


def load(app: App, row_id: int) -> DualCall[StoredJob]:
    """Return the stored state of a job; an empty one if nothing is stored."""
    rows = yield query(app, READ, row_id=row_id)
    return StoredJob(**rows[0]) if rows else StoredJob()


def find_rows(app: App, job_id: str) -> DualCall[list[dict[str, Any]]]:
    """Return all rows of a job, oldest first; an unknown job has no rows."""
    # A job that was deferred without an id has the id name@row.
    name, _, number = job_id.rpartition("@")
    numbered = number.isascii() and number.isdigit() and len(number) < _MAX_DIGITS
    row_id = int(number) if numbered else None
    rows: list[dict[str, Any]]
    rows = yield query(app, FIND, job=job_id, task=name, row_id=row_id)
    return rows


def envelope_to_json(envelope: Envelope) -> str:
    """Return an envelope as JSON."""
    return as_json("envelope", envelope.to_dict())


def replace_if_unchanged(
    app: App,
    row_id: int,
    before: StoredJob,
    after: StoredJob,
    envelope: Envelope | None = None,
) -> DualCall[Any]:
    """Replace the stored state of a job if it is unchanged (compare and set).

    Returns:
        When the job is due, by the clock of the database; None if the state has
        changed, since another worker has the job.
    """
    left = 0.0 if envelope is None else max(envelope.time_left(wall()), 0.0)
    rows = yield query(
        app, WRITE, row_id=row_id, before=before.envelope, left=left, **after._asdict()
    )
    return rows[0]["at"] if rows else None
