"""Workflow ids of attempts, and the workflows of a job."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from dbos import DBOS, WorkflowStatus

from retrykit._internal.clocks import wall
from retrykit.durable._envelope import attempt_key
from retrykit.durable._job_report import check_started
from retrykit.integrations.dbos._job_functions import WORKFLOW
from retrykit.integrations.dbos._settings import check_launched

__all__ = ["AttemptId", "find_attempts", "find_latest_attempt"]
__all__ += ["keep_last_attempts", "parse_workflow_id"]

_ID: Final = re.compile(
    r"(?P<job>.*?)(?:#(?P<run>[0-9]+))?:(?P<number>[0-9]+)", re.DOTALL
)


# In seconds: attempts enqueued earlier were there when the rows were read.
_RECENT: Final = 3600


class AttemptId(NamedTuple):
    """The attempt that a workflow makes: its job, run and number.

    A workflow that was forked by hand has number 0, and its own id as the job.
    """

    job: str
    run: int
    number: int

    @property
    def key(self) -> str:
        """The id of the workflow, unless it was forked by hand."""
        return attempt_key(*self)


def find_latest_attempt(job_id: str) -> WorkflowStatus:
    """Return the workflow of the latest attempt of a job.

    Raises:
        ConfigError: There is no such job, or DBOS is not launched.
    """
    rows = {parse_workflow_id(row.workflow_id): row for row in find_attempts(job_id)}
    last = check_started(job_id, rows)[max(rows)]
    # Read the input separately: it never changes, so the row stays consistent.
    [same] = DBOS.list_workflows(workflow_ids=[last.workflow_id])
    last.input = same.input
    return last


def find_attempts(job_id: str) -> list[WorkflowStatus]:
    """Return the workflows of a job, without their input."""
    check_launched()
    rows = DBOS.list_workflows(
        workflow_id_prefix=[f"{job_id}:", f"{job_id}#"], name=WORKFLOW, load_input=False
    )
    return [row for row in rows if parse_workflow_id(row.workflow_id).job == job_id]


def keep_last_attempts(rows: Sequence[WorkflowStatus]) -> list[WorkflowStatus]:
    """Return the attempts that are the last of their jobs.

    If the next attempt has been enqueued since the rows were read, it is returned
    instead. Workflows that were forked by hand are left out.
    """
    kept: list[WorkflowStatus] = []
    # The attempt that follows a finished one is itself among the rows.
    followed = {row.workflow_id for row in rows if row.status != "SUCCESS"}
    while rows:
        successors = _successors(rows)
        # DBOS ignores an empty list of ids, and would return all workflows.
        existing = DBOS.list_workflows(
            workflow_ids=[*successors, ""], load_input=False, load_output=False
        )
        superseded = {successors[row.workflow_id] for row in existing}
        kept += [
            row
            for row in rows
            if row.workflow_id not in superseded
            and parse_workflow_id(row.workflow_id).number
        ]
        since = (wall() - _RECENT) * 1000
        newer = [
            row.workflow_id
            for row in existing
            if successors[row.workflow_id] in followed and (row.created_at or 0) > since
        ]
        followed = {*newer}
        rows = DBOS.list_workflows(workflow_ids=newer) if newer else []
    return kept


def _successors(rows: Sequence[WorkflowStatus]) -> dict[str, str]:
    """Return the ids of attempts that may follow, each with the id of the one before.

    An attempt may be followed by the next one, or by the first one of the next run.
    """
    attempts = {row.workflow_id: parse_workflow_id(row.workflow_id) for row in rows}
    return {
        successor.key: key
        for key, attempt in attempts.items()
        for successor in (
            attempt._replace(number=attempt.number + 1),
            attempt._replace(run=attempt.run + 1, number=1),
        )
    }


def parse_workflow_id(key: str) -> AttemptId:
    """Return the attempt that the workflow with this id makes."""
    parts = _ID.fullmatch(key)
    if parts is None:
        # A workflow that was forked by hand has an id from DBOS.
        return AttemptId(key, 1, 0)
    return AttemptId(parts["job"], int(parts["run"] or 1), int(parts["number"]))
