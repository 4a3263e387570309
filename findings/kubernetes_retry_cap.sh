#!/usr/bin/env bash
# Kubernetes' Python client: a cap on the delay ends the retries, after a wait for nothing
#
# Seen with: kubernetes 37.0.1 and 37.0.2 (kubernetes.utils.retry).
#
# Expected: the documentation of Backoff says that steps is the number of calls at most and that cap
# limits the delays that grow. Backoff(steps=5, duration=1, factor=4, cap=6) makes five calls and
# waits 1, 4, 6 and 6 s between them.
#
# Seen: two calls. Once the next delay would be above the cap, no steps are left, but the delay that
# is due is slept all the same: 1 s, a call, 4 s, and the error is raised without a call after it.
# With cap=3 there is one call, a wait of 1 s, and the error. on_retry_after_error combines that with
# the hint of the server: 429 with "Retry-After: 30" is waited for, all of the 30 s, and then nobody
# asks again.
#
# It is a faithful copy: the Backoff that client-go uses sets its steps to zero too, and says so where
# its field Cap is described. The Python text does not.
#
# Why it matters: adding a cap is meant to make waits shorter, not calls fewer, and the caller gets an
# error that is as old as the wait. Whoever stops retrying should do so before the sleep.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv --without-pip venv
python3 -m pip --python venv/bin/python install --quiet --disable-pip-version-check kubernetes==37.0.2

cat > probe.py <<'PYTHON'
from kubernetes.client.rest import ApiException
from kubernetes.utils import retry


def watch(name, run, backoff, retry_after=None):
    """Print what is called and slept, in order."""
    events = []

    def call():
        events.append("call")
        error = ApiException(status=429)
        error.headers = {"Retry-After": retry_after} if retry_after else {}
        raise error

    def sleep(seconds):
        events.append(f"{seconds:g} s")

    try:
        run(backoff, retry.is_too_many_requests, call, sleep_func=sleep)
    except ApiException:
        events.append("error")
    print(f"{name}:", ", ".join(events))


def backoff(cap):
    return retry.Backoff(steps=5, duration=1, factor=4, cap=cap)


watch("no cap", retry.on_error, backoff(0))
watch("cap of 6 s", retry.on_error, backoff(6))
watch("cap of 3 s", retry.on_error, backoff(3))
watch("cap of 3 s, Retry-After 30", retry.on_retry_after_error, backoff(3), "30")
PYTHON
seen=$(venv/bin/python probe.py)

expected='no cap: call, 1 s, call, 4 s, call, 16 s, call, 64 s, call, error
cap of 6 s: call, 1 s, call, 4 s, error
cap of 3 s: call, 1 s, error
cap of 3 s, Retry-After 30: call, 30 s, error'
if [[ "$seen" != "$expected" ]]; then
  printf 'This has changed.\nExpected:\n%s\nSeen:\n%s\n' "$expected" "$seen"
  exit 1
fi
printf '%s\n' "$seen"
