"""The workflows of a job: which attempt each one is, and which is the newest.

It knows their ids, and not how the job stands.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from dbos import DBOS, WorkflowStatus

from retrykit._internal.validation import invalid_setting
from retrykit.integrations.dbos.jobs import WORKFLOW
from retrykit.integrations.dbos.settings import check_launched

__all__ = ["Place", "attempts_of", "last_ones", "newest", "place_of"]

_ID: Final = re.compile(
    r"(?P<job>.*?)(?:#(?P<run>[0-9]+))?:(?P<attempt>[0-9]+)", re.DOTALL
)


class Place(NamedTuple):
    """Which attempt of which job a workflow is."""

    job: str
    run: int
    attempt: int

    @property
    def key(self) -> str:
        """The id of that workflow."""
        again = "" if self.run == 1 else f"#{self.run}"
        return f"{self.job}{again}:{self.attempt}"


def newest(job_id: str) -> WorkflowStatus:
    """Return the workflow of the newest attempt of a job.

    Raises:
        ConfigError: There is none.
    """
    own = {place_of(row.workflow_id): row for row in attempts_of(job_id)}
    if not own:
        raise invalid_setting("job_id", "the id of a job that was started", job_id)
    last = own[max(own)]
    # All else is of one moment, and this never changes.
    [again] = DBOS.list_workflows(workflow_ids=[last.workflow_id])
    last.input = again.input
    return last


def attempts_of(job_id: str) -> list[WorkflowStatus]:
    """Return the workflows of a job, without what they were called with."""
    check_launched()
    rows = DBOS.list_workflows(
        workflow_id_prefix=[f"{job_id}:", f"{job_id}#"],
        name=WORKFLOW,
        load_input=False,
    )
    return [row for row in rows if place_of(row.workflow_id).job == job_id]


def last_ones(rows: Sequence[WorkflowStatus]) -> list[WorkflowStatus]:
    """Return the attempts that are the last ones of their jobs.

    None of those that were forked by hand: they are of whoever did so.
    """
    places = {row.workflow_id: place_of(row.workflow_id) for row in rows}
    later = {
        after.key: key
        for key, place in places.items()
        for after in (
            place._replace(attempt=place.attempt + 1),
            place._replace(run=place.run + 1, attempt=1),
        )
    }
    # Of an empty list DBOS would take no notice.
    there = DBOS.list_workflows(
        workflow_ids=[*later, ""], load_input=False, load_output=False
    )
    over = {later[row.workflow_id] for row in there}
    return [
        row
        for row in rows
        if row.workflow_id not in over and places[row.workflow_id].attempt
    ]


def place_of(key: str) -> Place:
    """Return which attempt the workflow of an id is."""
    parts = _ID.fullmatch(key)
    if parts is None:
        # Forked by hand, under an id of DBOS's own.
        return Place(key, 1, 0)
    return Place(parts["job"], int(parts["run"] or 1), int(parts["attempt"]))
