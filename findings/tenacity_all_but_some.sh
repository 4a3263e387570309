#!/usr/bin/env bash
# Tenacity's "all but these errors" retries Ctrl-C and the cancellation of a task
#
# Seen with: tenacity 9.2.1.
#
# Expected: by default tenacity retries every Exception, and lets KeyboardInterrupt, SystemExit and
# asyncio.CancelledError through, as they are none. A condition that names a few errors which are not
# worth a retry, retry_if_not_exception_type(ValueError), takes ValueError away from that.
#
# Seen: it also adds all that is no Exception. A function that is interrupted is called until its
# attempts are used up. A task that is cancelled while it runs an attempt begins another one, ends with a
# result, and is not cancelled. retry_if_exception_type() and the default do neither.
#
# Why it matters: a time limit by asyncio.timeout, the cancellation of a task group and a server that
# shuts down all cancel tasks; the retried one goes on, and whoever waits for it waits longer. Ctrl-C
# at the terminal seems to do nothing. The form is a common one around calls of language models.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv --without-pip venv
python3 -m pip --python venv/bin/python install --quiet --disable-pip-version-check tenacity==9.2.1

cat > probe.py <<'PYTHON'
import asyncio

import tenacity

CONDITIONS = {
    "default": {},
    "all but ValueError": {"retry": tenacity.retry_if_not_exception_type(ValueError)},
}


def interrupted(settings):
    """Return how often a function is called that Ctrl-C interrupts."""
    calls = []

    @tenacity.retry(stop=tenacity.stop_after_attempt(3), reraise=True, **settings)
    def fetch():
        calls.append(1)
        raise KeyboardInterrupt

    try:
        fetch()
    except KeyboardInterrupt:
        return len(calls)


async def cancelled(settings):
    """Return how a task ends that is cancelled in its first attempt."""
    started = asyncio.Event()
    attempts = []

    @tenacity.retry(stop=tenacity.stop_after_attempt(3), reraise=True, **settings)
    async def fetch():
        attempts.append(1)
        started.set()
        if len(attempts) == 1:
            await asyncio.Event().wait()
        return "an answer"

    task = asyncio.create_task(fetch())
    await started.wait()
    task.cancel()
    await asyncio.wait([task])
    end = "cancelled" if task.cancelled() else task.result()
    return f"{len(attempts)} attempts, {end}"


for name, settings in CONDITIONS.items():
    print(f"{name}, Ctrl-C: {interrupted(settings)} calls")
    print(f"{name}, cancelled: {asyncio.run(cancelled(settings))}")
PYTHON
seen=$(venv/bin/python probe.py)

expected='default, Ctrl-C: 1 calls
default, cancelled: 1 attempts, cancelled
all but ValueError, Ctrl-C: 3 calls
all but ValueError, cancelled: 2 attempts, an answer'
if [[ "$seen" != "$expected" ]]; then
  printf 'This has changed.\nExpected:\n%s\nSeen:\n%s\n' "$expected" "$seen"
  exit 1
fi
printf '%s\n' "$seen"
