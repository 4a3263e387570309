"""Invalid settings of jobs and invalid envelopes, by the message of their error."""

import math

from retrykit import Policy
from retrykit.durable import Envelope, Job
from retrykit.durable._durable_function import job_of
from retrykit.durable._envelope import read_own_envelope
from retrykit.durable._job_report import check_started
from retrykit.durable._job_selection import select_jobs
from retrykit.durable._json_payloads import as_json, from_json
from tests._support.reference_data import reference_data

__all__ = ["ERRORS"]

STORED = reference_data("envelope")
POLICY = Policy(name="hosts")
JOB = Job(int, POLICY, "parse")
NAMELESS = f"{__name__}.<lambda>"
EMPTY = dict.fromkeys(STORED) | {"version": 1}
NEVER = STORED | {"run": 0}
DEAD = Envelope.from_dict(
    STORED
    | {
        "due": None,
        "state": STORED["state"]
        | {
            "stop_reason": "attempts",
            "next_delay": None,
        },
    }
)
RULE = "must be as retrykit wrote it"
JSON_RULE = "JSON-serializable: None, bools, finite numbers, strings, lists and dicts"


nameless = lambda: None  # noqa: E731  without a name


def attempt(envelope):
    return lambda: JOB.attempt(envelope, [], {})


def select(limit=None, **filters):
    return lambda: select_jobs([], filters, limit)


ERRORS = {
    "envelope.job must be 'parse-7', the job with which it is stored, got 'parse-8'": (
        lambda: read_own_envelope(JOB.envelope("parse-8").to_dict(), "parse-7")
    ),
    "envelope.run must be 2, the run of the job with which it is stored, got 1": (
        lambda: read_own_envelope(JOB.envelope("parse-7").to_dict(), "parse-7", 2)
    ),
    "policy.name must be a printable string, got 'a\\nb'": (
        lambda: Job(int, Policy(name="a\nb"), "parse")
    ),
    "status must be one of 'waiting', 'running', 'succeeded', 'dead', got 'done'": (
        select(status="done")
    ),
    "limit must be an integer >= 1, got 0": select(limit=0),
    "filters must be one of 'status', 'name', 'error', 'overdue', 'older_than', "
    "got 'nmae'": select(nmae="verify"),
    "name must be a non-empty string, got 7": select(name=7),
    "error must be a non-empty string, got ''": select(error=""),
    'overdue must be a duration such as "12.5s", "500ms" or "1h30m", got '
    "'soon'; write the unit (us, ms, s, m, h, d, w)": select(overdue="soon"),
    "older_than must be a finite number >= 0, got -1": select(older_than=-1),
    "envelope must be of version 1, got 'version 2'; upgrade retrykit in this worker": (
        lambda: Envelope.from_dict({"version": 2})
    ),
    f"envelope {RULE}, got []; it is not a dict": lambda: Envelope.from_dict([]),
    f"envelope.job {RULE}, got None; it is not of type str": (
        lambda: Envelope.from_dict(EMPTY)
    ),
    f"envelope.run {RULE}, got 0; it contradicts the rest": (
        lambda: Envelope.from_dict(NEVER)
    ),
    "policy must be a Policy, got 'hosts'; write policy=Policy(...)": (
        lambda: Job(int, "hosts")
    ),
    "job_id must be the id of a job that was started, got 'parse-8'": (
        lambda: check_started("parse-8", None)
    ),
    "previous_names must be a list of names, got 'old'; put it in brackets": (
        lambda: Job(int, POLICY, previous_names="old")
    ),
    "name must be a name by which a worker can find the function, got "
    f"{NAMELESS!r}; write name='verify'": (lambda: job_of(nameless, POLICY, None, ())),
    "max_killed must be an integer >= 1, got 0": (
        lambda: Job(int, POLICY, max_killed=0)
    ),
    "previous_names must be a list of names, got 5": (
        lambda: Job(int, POLICY, previous_names=5)
    ),
    "previous_names[0] must be a non-empty string, got 5": (
        lambda: Job(int, POLICY, previous_names=[5])
    ),
    "name must be a printable string, got 'a\\nb'": (lambda: Job(int, POLICY, "a\nb")),
    "job_id must be a non-empty string, got ''": lambda: JOB.envelope(""),
    "job_id must be a string without '#', got 'a#2'; '#' marks requeued jobs": (
        lambda: JOB.envelope("a#2")
    ),
    "run must be an integer >= 1, got 0": lambda: JOB.envelope("a", 0),
    "envelope must be one of a waiting job, got 'dead'; Job.envelope creates a new "
    "one": attempt(DEAD),
    "policy must be 'hosts', the policy of parse, got 'hostnames'; if it was renamed, "
    "add its old name to previous_names=[...]": attempt(Envelope.from_dict(STORED)),
    f"args must be {JSON_RULE}, not nested too deeply and not too long, got <int that "
    "cannot be shown>": lambda: as_json("args", 10**5000),
    f"args[0] must be {JSON_RULE}, got {{1}}; pass an id or a string instead": (
        lambda: as_json("args", [{1}])
    ),
    "args must be a dict with string keys, got {1: 2}; JSON would turn them into "
    "strings": lambda: as_json("args", {1: 2}),
    "args['x'] must be a finite number, got inf; JSON has no NaN or infinity": (
        lambda: as_json("args", {"x": math.inf})
    ),
    "args must be encodable as UTF-8, got 'caf\\udce9'; for a file name, pass "
    "os.fsencode(name).hex()": lambda: as_json("args", "caf\udce9"),
    "args must be a string without NUL, got 'a\\x00'; PostgreSQL does not store it": (
        lambda: as_json("args", "a\0")
    ),
    "args must be JSON text, got None": lambda: from_json("args", None),
    "args must be valid JSON text, got '[NaN]'; NaN is not valid JSON": (
        lambda: from_json("args", "[NaN]")
    ),
}
