#!/usr/bin/env bash
# APScheduler: jitter makes an interval longer, by half of the jitter for each run
#
# Seen with: APScheduler 3.11.3.
#
# Expected: jitter spreads the runs of a job around their times and leaves their number alone: a job
# every 60 s runs 1,440 times a day, whatever its jitter. The documentation says "delay the job
# execution by jitter seconds at most".
#
# Seen: with jitter=20 the cron trigger keeps its number, but the interval trigger counts from the
# last run, which had its own jitter. The delays add up: one run every 70 s, about 1,234 a day.
# The 1,440th run comes four hours late.
#
# Why it matters: a jitter that is added to the time of the last event, and not to the grid, changes
# the rate. What holds a lease, sends a heartbeat or polls under a deadline then comes too late by
# an amount that no setting names.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv --without-pip venv
python3 -m pip --python venv/bin/python install --quiet --disable-pip-version-check APScheduler==3.11.3

cat > probe.py <<'PYTHON'
import random
from datetime import datetime, timedelta, timezone

from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

begin = datetime(2026, 1, 1, tzinfo=timezone.utc)


def period(trigger):
    """Return the mean seconds from run to run over 20 days, asking for each time as the scheduler does."""
    random.seed(1)
    count, when = 0, trigger.get_next_fire_time(None, begin)
    while when < begin + timedelta(days=20):
        count += 1
        when = trigger.get_next_fire_time(when, when)
    return round(20 * 86_400 / count)


for jitter in None, 20:
    interval = IntervalTrigger(seconds=60, start_date=begin, jitter=jitter, timezone="UTC")
    cron = CronTrigger(second=0, jitter=jitter, timezone="UTC")
    print(f"jitter {jitter}: interval every {period(interval)} s, cron every {period(cron)} s")
PYTHON
seen=$(venv/bin/python probe.py)

expected='jitter None: interval every 60 s, cron every 60 s
jitter 20: interval every 70 s, cron every 60 s'
if [[ "$seen" != "$expected" ]]; then
  printf 'This has changed.\nExpected:\n%s\nSeen:\n%s\n' "$expected" "$seen"
  exit 1
fi
printf '%s\n' "$seen"
