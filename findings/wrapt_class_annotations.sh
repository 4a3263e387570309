#!/usr/bin/env bash
# wrapt: who looks at the class of a proxy takes the annotations from every proxy of it
#
# Seen with: wrapt 2.5.2, CPython 3.11.7 and 3.13.0.
#
# Expected: a proxy has the attributes of what it wraps, whatever was done before. Looking at a class,
# as inspect.getmembers does, changes nothing.
#
# Seen: a class that is derived from wrapt.CallableObjectProxy in Python, which is how one writes a
# proxy of one's own, has no annotations. Up to Python 3.13, reading them on the class makes an empty
# dict and puts it into the class, where it hides the attribute that asks the wrapped function. From
# then on __annotations__ and typing.get_type_hints are empty for every proxy of that class, those
# that were made before included. inspect.signature, which follows __wrapped__, still knows them.
# One variable with an annotation in the body of the class does the same from the start.
#
# Why it matters: what builds a command line, a form, a schema or a dependency from the types of a
# function then builds it from nothing, depending on whether documentation, completion or a mock has
# looked at the class before.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv --without-pip venv
python3 -m pip --python venv/bin/python install --quiet --disable-pip-version-check wrapt==2.5.2

cat > probe.py <<'PYTHON'
import inspect
import typing

import wrapt


class Proxy(wrapt.CallableObjectProxy):
    """A proxy that adds nothing."""


class Named(wrapt.CallableObjectProxy):
    """A proxy with an annotation of its own."""

    kind: str = "named"


def find(key: int) -> str:
    return str(key)


def show(when, proxy):
    names = sorted(proxy.__annotations__), sorted(typing.get_type_hints(proxy))
    print(f"{when}: {names[0]}, {names[1]}, {inspect.signature(proxy)}")


proxy = Proxy(find)
show("before", proxy)
inspect.getmembers(Proxy)
show("after", proxy)
show("with one of its own", Named(find))
PYTHON
seen=$(venv/bin/python probe.py)

expected="before: ['key', 'return'], ['key', 'return'], (key: int) -> str
after: [], [], (key: int) -> str
with one of its own: ['kind'], ['kind'], (key: int) -> str"
if [[ "$seen" != "$expected" ]]; then
  printf 'This has changed.\nExpected:\n%s\nSeen:\n%s\n' "$expected" "$seen"
  exit 1
fi
printf '%s\n' "$seen"
