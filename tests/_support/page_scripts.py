"""Scripts of the HTML report that do not need the page, run by Node.js."""

import json
import subprocess
from importlib.resources import files

from tests._support.required import program

__all__ = ["run_in_node"]

# The same order as in the page.
_NAMES = ["schedules", "limits", "values", "kinds", "source_text", "delays"]
_NAMES += ["random_numbers", "simulated_budgets", "simulation_results", "simulation"]
_NAMES += ["answers", "expressions", "address"]
_MAIN = """
const given = JSON.parse(require("fs").readFileSync(0, "utf8"));
const found = (function (...given) {{ {script} }})(...given);
process.stdout.write(JSON.stringify(found));
"""


def run_in_node(script, *given):
    """Return the result of a script, which has the arguments in `given`."""
    folder = files("retrykit.analysis.html_report")
    texts = [folder.joinpath(f"{name}.js").read_text("utf-8") for name in _NAMES]
    source = "\n".join(['"use strict";', *texts, _MAIN.format(script=script)])
    ended = subprocess.run(  # noqa: S603  the source is ours
        [program("node"), "--eval", source],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)
