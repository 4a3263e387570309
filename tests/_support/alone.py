"""Runs each file of tests or examples in a process of its own.

``python -m tests._support.alone`` passes its arguments to pytest, to select files.
"""

import os
import subprocess
import sys
from multiprocessing.pool import ThreadPool

__all__ = ["main"]


def run_pytest(*args):
    """Run pytest in a new process, and return its exit code and output."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    run = subprocess.run(  # noqa: S603  a fixed command
        [*command, *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        encoding="utf-8",
    )
    return run.returncode, run.stdout


def main(*args):
    """Print the output of each file that fails, and return how many do."""
    code, output = run_pytest("--collect-only", *args)
    if code:
        sys.exit(output)
    lines = output.splitlines()
    files = sorted({line.partition("::")[0] for line in lines if "::" in line})
    failed = 0
    with ThreadPool(os.cpu_count()) as pool:
        runs = pool.imap(run_pytest, files)
        for file, (code, output) in zip(files, runs, strict=True):
            if code:
                failed += 1
                print(f"$ python -m pytest {file}\n{output}", flush=True)
    print(f"{failed} of {len(files)} files fail alone")
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) > 0)
