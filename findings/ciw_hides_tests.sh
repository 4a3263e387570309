#!/usr/bin/env bash
# Ciw, which simulates queues, installs a package "tests" that hides a project's own folder
#
# Seen with: ciw 3.2.7.
#
# Expected: installing a simulator next to a project changes nothing about the project's own modules.
# A folder "tests" without an __init__.py, as pytest and many projects have it, is a namespace package,
# and "python -m tests.check", run in the folder of the project, finds tests/check.py first, since the
# current folder is the first place to look in.
#
# Seen: the wheel has two top-level packages, "ciw" and "tests". After its installation, the same command
# in the same folder ends with "No module named tests.check": a package with an __init__.py anywhere on the path
# comes before all folders without one, so "tests" is now that of Ciw. With an __init__.py in the
# project's folder, the project's own is found again.
#
# Why it matters: a test suite, or a tool kept beside it, no longer runs once a benchmark has one more
# library to compare with, and the error names the project's own module, not the library.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv --without-pip venv

mkdir -p project/tests
echo 'print("the project")' > project/tests/check.py
cd project

# The last line, without the path of the interpreter.
run() { ../venv/bin/python -m tests.check 2>&1 | tail -n 1 | sed 's/^.*python: //' || true; }

before=$(run)
python3 -m pip --python ../venv/bin/python install --quiet --disable-pip-version-check ciw==3.2.7
after=$(run)
owner=$(../venv/bin/python -c 'import ciw, tests; from pathlib import Path
print(Path(tests.__file__).parents[1] == Path(ciw.__file__).parents[1])')
touch tests/__init__.py
mended=$(run)

echo "before the installation:     $before"
echo "after it:                    $after"
echo "'tests' is beside ciw:       $owner"
echo "with an __init__.py of ours: $mended"

[[ $before == "the project" ]] || { echo "CHANGED: the folder is not found"; exit 1; }
[[ $after == "No module named tests.check" ]] || { echo "CHANGED: nothing is hidden"; exit 1; }
[[ $owner == True ]] || { echo "CHANGED: 'tests' is from elsewhere"; exit 1; }
[[ $mended == "the project" ]] || { echo "CHANGED: it is still hidden"; exit 1; }
