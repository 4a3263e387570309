# pyright: reportUnnecessaryTypeIgnoreComment=true
"""Types of jobs on DBOS; checked, never run."""

from datetime import UTC, datetime
from typing import assert_type

from retrykit import Policy
from retrykit.durable import JobReport
from retrykit.integrations import dbos

POLICY = Policy(schedule=["1h"])

settings = dbos.config("hostnames", executor="one")
dbos.listen(settings, concurrency=5, polling="1s")
dbos.connect(settings)
dbos.connect("hostnames")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@dbos.job(POLICY, name="verify", previous_names=["check"])
def verify(host: str, *, port: int = 443) -> bool:
    return bool(host) and port > 0


@dbos.job(POLICY)
async def averify(host: str) -> bytes:
    return host.encode()


dbos.job()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

assert_type(verify("example.com"), bool)
assert_type(verify.start("example.com", port=80), str)
assert_type(verify.start_as("verify-7", "example.com"), str)
verify.start(7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
verify.start()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
verify.start("example.com", port="80")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
verify.start("example.com", 80)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
verify.start_as("verify-7")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

assert_type(dbos.status("verify-7"), JobReport)
assert_type(dbos.jobs(status="dead", limit=5), list[JobReport])
assert_type(dbos.take_over("two"), list[str])
dbos.requeue("verify-7")
dbos.kill("verify-7")
dbos.retry_at("verify-7", datetime.now(UTC))
dbos.retry_at("verify-7", "tomorrow")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def main() -> None:
    assert_type(await averify("example.com"), bytes)
    assert_type(await averify.astart("example.com"), str)
    assert_type(await verify.astart_as("verify-7", "example.com", port=80), str)
    await averify.astart(7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
