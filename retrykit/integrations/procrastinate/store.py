"""What is kept in the database, and everything that is asked of it in SQL.

A table of our own keeps the history of each job, in a row beside the job's own in
Procrastinate's table, whose id is the place of both. What goes in and comes out is
text, so that it is the same under every connector.
"""

from importlib.resources import files
from typing import Any, Final, LiteralString, NamedTuple

from procrastinate import App

from retrykit._internal.clocks import wall
from retrykit.durable import Envelope
from retrykit.durable.json_payloads import as_json
from retrykit.integrations.procrastinate.sync_async import DualCall, Step

__all__ = ["CARRIED", "DEAD", "FIND", "MOVE", "READ", "STARTED", "WAKE", "WRITE"]
__all__ += ["StoredJob", "aapply_schema", "apply_schema", "asked", "kept_at", "schema"]
__all__ += ["rows_of", "type_to_name", "write"]

CARRIED: Final = "retrykit"
"""The argument of a task that is ours: its first envelope, and what has no name."""

STARTED: Final = "retrykit_jobs_started"
"""The index that keeps a job from being started twice."""

_HERE: Final = "retrykit.integrations.procrastinate"

# A bigint holds every number that is shorter.
_LONGEST: Final = 19

READ: Final = """
SELECT envelope::text, result::text, why::text
  FROM retrykit_jobs WHERE place = %(place)s
"""
"""What is kept at a place."""

WRITE: Final = """
INSERT INTO retrykit_jobs AS kept (place, envelope, result, why)
VALUES (%(place)s, %(envelope)s::json, %(result)s::json, %(why)s::json)
ON CONFLICT (place) DO UPDATE
   SET envelope = excluded.envelope, result = excluded.result, why = excluded.why
 WHERE kept.envelope::text IS NOT DISTINCT FROM %(before)s::text
RETURNING least(
    clock_timestamp() + %(left)s * interval '1 second',
    timestamptz '9999-01-01 00:00:00+00'
) AS at
"""
"""Keep something, unless something else than was read is there: another worker's.

The time is the database's, which also decides when a job is due: the clocks of
workers may differ from it."""

_ROWS: Final = """
SELECT job.id, job.status::text, job.task_name AS task, job.args::text AS args,
       job.queue_name AS queue, job.priority,
       kept.envelope::text, kept.result::text, kept.why::text
  FROM procrastinate_jobs job LEFT JOIN retrykit_jobs kept ON kept.place = job.id
"""

FIND: Final = (
    _ROWS
    + """
 WHERE (job.args -> 'retrykit' IS NOT NULL
        AND job.args -> 'retrykit' -> 'envelope' ->> 'job' = %(job)s)
    OR (job.args -> 'retrykit' IS NULL
        AND job.id = %(place)s::bigint AND job.task_name = %(task)s)
 ORDER BY job.id
"""
)
"""All that a job was begun as, oldest first."""

DEAD: Final = (
    _ROWS
    + """
 WHERE job.status IN ('failed', 'cancelled', 'aborted')
   AND (job.args -> 'retrykit' IS NOT NULL OR kept.place IS NOT NULL)
   AND NOT EXISTS (
       SELECT FROM procrastinate_jobs newer
        WHERE newer.args -> 'retrykit' IS NOT NULL
          AND newer.args -> 'retrykit' -> 'envelope' ->> 'job' = coalesce(
              job.args -> 'retrykit' -> 'envelope' ->> 'job',
              job.task_name || '@' || job.id
          )
          AND newer.id > job.id
   )
 ORDER BY job.id DESC LIMIT %(limit)s
"""
)
"""Jobs that have died and were not begun anew, newest first."""

MOVE: Final = """
WITH moved AS (
    UPDATE procrastinate_jobs job SET scheduled_at = %(when)s
     WHERE id = %(place)s AND status = 'todo'
       AND (SELECT envelope::text FROM retrykit_jobs WHERE place = job.id)
           IS NOT DISTINCT FROM %(before)s::text
    RETURNING id
)
INSERT INTO retrykit_jobs (place, envelope)
SELECT id, %(envelope)s::json FROM moved
ON CONFLICT (place) DO UPDATE SET envelope = excluded.envelope
RETURNING place
"""
"""Let a job that waits go on at another time, unless an attempt was made meanwhile.

In both tables at once, or it would wait on until the time in its envelope."""

WAKE: Final = """
UPDATE procrastinate_jobs
   SET status = CASE WHEN abort_requested THEN 'failed' ELSE 'todo' END
                ::procrastinate_job_status,
       attempts = attempts + 1, scheduled_at = clock_timestamp()
 WHERE id = %(place)s AND status = 'doing'
   AND worker_id IS NOT DISTINCT FROM %(worker)s::bigint
RETURNING id
"""
"""Put a job back as Procrastinate itself does, unless another worker has it by now."""


class StoredJob(NamedTuple):
    """What is kept at a place, each part as JSON; None is not kept."""

    envelope: str | None = None
    result: str | None = None
    why: str | None = None


def schema() -> str:
    """Return the SQL of what is kept beside Procrastinate's own tables."""
    return files(_HERE).joinpath("schema.sql").read_text("utf-8")


def apply_schema(app: App) -> None:
    """Make the table, after that of Procrastinate; it may be called again.

    It adds an index to Procrastinate's table: no job is written while that is read.
    """
    query: Any = schema()
    app.connector.get_sync_connector().execute_query(query)


async def aapply_schema(app: App) -> None:
    """Make the table, as `apply_schema` does, from a coroutine."""
    query: Any = schema()
    await app.connector.execute_query_async(query)


def asked(app: App, query: LiteralString, **arguments: Any) -> Step:
    """Return the step that asks the database; what comes is a list of rows."""

    def blocking() -> list[dict[str, Any]]:
        connector = app.connector.get_sync_connector()
        return connector.execute_query_all(query, **arguments)

    return Step(
        blocking, lambda: app.connector.execute_query_all_async(query, **arguments)
    )


def kept_at(app: App, place: int) -> DualCall[StoredJob]:
    """Return what is kept at a place."""
    rows = yield asked(app, READ, place=place)
    return StoredJob(**rows[0]) if rows else StoredJob()


def rows_of(app: App, job_id: str) -> DualCall[list[dict[str, Any]]]:
    """Return all that a job was begun as, oldest first."""
    # What was deferred without an id of its own is called name@row.
    name, _, number = job_id.rpartition("@")
    numbered = number.isascii() and number.isdigit() and len(number) < _LONGEST
    place = int(number) if numbered else None
    rows: list[dict[str, Any]]
    rows = yield asked(app, FIND, job=job_id, task=name, place=place)
    return rows


def type_to_name(envelope: Envelope) -> str:
    """Return an envelope as JSON."""
    return as_json("envelope", envelope.to_dict())


def write(
    app: App,
    place: int,
    before: StoredJob,
    after: StoredJob,
    envelope: Envelope | None = None,
) -> DualCall[Any]:
    """Keep something at a place, in the stead of what was read there.

    Args:
        app: Where.
        place: The place.
        before: What was read there.
        after: What is kept from now on.
        envelope: What says how long the job waits.

    Returns:
        When that time is over, by the clock of the database; None if something else
        was there: another worker goes on with the job.
    """
    left = 0.0 if envelope is None else max(envelope.time_left(wall()), 0.0)
    rows = yield asked(
        app, WRITE, place=place, before=before.envelope, left=left, **after._asdict()
    )
    return rows[0]["at"] if rows else None
