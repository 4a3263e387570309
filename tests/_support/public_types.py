"""Type completeness of the public modules: ``python -m tests._support.public_types``.

Pyright lists the names whose types it cannot know without inferring them. Airflow is
not installed beside it.
"""

import json
import os
import subprocess
import sys

from tests._support.documents import ROOT

__all__ = ["main"]

COMMAND = ["pyright", "--verifytypes", "retrykit", "--ignoreexternal", "--outputjson"]
MISSING = "retrykit.integrations.airflow."


def main() -> None:
    """Print the public names whose types are not known, and fail if there are any."""
    # It does not follow the import hook of an editable installation.
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run(COMMAND, stdout=subprocess.PIPE, check=False, env=env)  # noqa: S603  fixed
    found = json.loads(ended.stdout)["typeCompleteness"]
    names = [each for each in found["symbols"] if each["isExported"]]
    unknown = [
        f"{each['name']}: {'; '.join(told['message'] for told in each['diagnostics'])}"
        for each in found["symbols"]
        if not each["isTypeKnown"] and not each["name"].startswith(MISSING)
    ]
    modules = len(found["modules"])
    print(*unknown, f"{modules} public modules, {len(names)} names", sep="\n")
    sys.exit(bool(unknown or not names))


if __name__ == "__main__":
    main()
