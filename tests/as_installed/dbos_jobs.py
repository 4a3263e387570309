"""The durable jobs of a user, on DBOS with a SQLite file in the current folder."""

from retrykit import GiveUp, Policy
from retrykit.integrations import dbos as durable

SETTINGS = durable.config("hostnames", database="sqlite:///jobs.sqlite")


@durable.job(Policy(schedule=["1h"], on=TimeoutError), name="verify")
def verify(hostname):
    error = TimeoutError(hostname)
    raise GiveUp(error) if hostname == "dead.example" else error
