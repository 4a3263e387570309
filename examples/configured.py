"""Read policies from a TOML file, and override them with environment variables.

Reading a file runs no code. This example writes the file to a temporary folder
first; a program keeps it beside its code.

Prints::

    base: Policy(schedule=exponential(0.5, factor=2.0).cap(30.0).full_jitter())
    fetch: Policy(schedule=exponential(0.5, factor=2.0).cap(30.0).full_jitter(), \
max_attempts=8, on=(ConnectionError, TimeoutError))
    fetch, overridden: 3 attempts, 20.0 s
    jobs: 11 attempts, the first delay from 16.0 to 46.0 s
    error: typo.toml, policy 'fetch': max_atempts is not a policy setting, \
got 3; did you mean max_attempts?  [unknown-name]
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from retrykit import ConfigError, Policy

TEXT = """
[tool.retrykit.policies.base]
schedule = "exponential('500ms').cap('30s').full_jitter()"

[tool.retrykit.policies.fetch]
extends = "base"
max_attempts = 8
on = ["ConnectionError", "TimeoutError"]

[tool.retrykit.policies.jobs]
extends = "zizq:retry_limit=10"
"""
TYPO = """
[policies.fetch]
max_atempts = 3
"""


def main(folder: Path) -> None:
    """Print the policies of a file, one with overrides, and the error for a typo."""
    path = folder / "pyproject.toml"
    path.write_text(TEXT, "utf-8")
    for name in ("base", "fetch"):
        print(f"{name}: {Policy.from_toml(path, name)!r}")

    # By default, environ is os.environ.
    variables = {"FETCH_MAX_ATTEMPTS": "3", "FETCH_MAX_ELAPSED": "20s"}
    base = Policy.from_toml(path, "fetch")
    overridden = Policy.from_env("FETCH", base=base, environ=variables)
    attempts, seconds = overridden.max_attempts, overridden.max_elapsed
    print(f"fetch, overridden: {attempts} attempts, {seconds} s")

    jobs = Policy.from_toml(path, "jobs")
    low, high = jobs.schedule.bounds(1) or (0.0, 0.0)
    print(f"jobs: {jobs.max_attempts} attempts, the first delay from {low} to {high} s")

    wrong = folder / "typo.toml"
    wrong.write_text(TYPO, "utf-8")
    try:
        Policy.from_toml(wrong, "fetch")
    except ConfigError as error:
        print(f"error: {error}".replace(str(wrong), wrong.name))


if __name__ == "__main__":
    with TemporaryDirectory() as temporary:
        main(Path(temporary))
