#!/usr/bin/env bash
# In Celery's task_annotations, the options of "*" replace those of the task that is named
#
# Seen with: celery 5.7.0 (kombu 5.7.0).
#
# Expected: "*" is what holds for every task, and the entry of one task is the exception to it, as a
# default and a special case are in most configurations. So shop.charge is retried twice, and all
# other tasks ten times.
#
# Seen: both are applied, the named entry first and "*" after it. Of an option that both have, that
# of "*" stays: shop.charge is retried ten times, too. Options that "*" does not have are kept.
#
# Why it matters: an entry for one task is written because the general one is wrong for it, and is
# without effect from the day on which somebody adds the same option to "*". Nothing tells of it.
# An annotation class of one's own, whose annotate() knows the names, has one order.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv --without-pip venv
python3 -m pip --python venv/bin/python install --quiet --disable-pip-version-check \
  celery==5.7.0 kombu==5.7.0

cat > probe.py <<'PYTHON'
from celery import Celery

app = Celery("shop", broker="memory://", set_as_current=False)
app.conf.task_annotations = {
    "*": {"max_retries": 10},
    "shop.charge": {"max_retries": 2, "rate_limit": "5/m"},
}


@app.task(name="shop.charge")
def charge():
    pass


@app.task(name="shop.mail")
def mail():
    pass


app.finalize()
for task in charge, mail:
    print(f"{task.name}: max_retries {task.max_retries}, rate_limit {task.rate_limit}")
PYTHON
seen=$(venv/bin/python probe.py)

expected='shop.charge: max_retries 10, rate_limit 5/m
shop.mail: max_retries 10, rate_limit None'
if [[ "$seen" != "$expected" ]]; then
  printf 'This has changed.\nExpected:\n%s\nSeen:\n%s\n' "$expected" "$seen"
  exit 1
fi
printf '%s\n' "$seen"
