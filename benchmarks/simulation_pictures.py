"""Makes pictures of simulations: ``python -m benchmarks.simulation_pictures``.

They are those of docs/metastable_failures.md; it takes some seconds, and needs
``retrykit[plot]``. Each has the digest of what it shows, which a test compares with
that of a new simulation.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from retrykit import Policy, budgets
from retrykit.schedules import exponential
from retrykit.simulate import Basin, Outage, Simulation, basin, simulate

__all__ = ["FOLDER", "PICTURES", "digest"]

FOLDER: Final = Path(__file__).parent.parent / "docs" / "pictures"

_IMMEDIATE: Final = Policy(schedule=[0, 0, 0])
_JITTERED: Final = Policy(schedule=exponential(1).cap(20).full_jitter(), max_attempts=4)
_503: Final = Outage("10s", "error")
_HANG: Final[dict[str, Any]] = {"load": "70%", "horizon": "60s"}

PICTURES: Final[dict[str, Callable[[], Simulation | tuple[Basin, Simulation]]]] = {
    "no_retries": lambda: simulate(Policy(max_attempts=1), **_HANG),
    "default_policy": lambda: simulate(Policy(), **_HANG),
    "fleet_budget": lambda: simulate(Policy(budget=budgets.FleetBudget()), **_HANG),
    "basin_of_no_return": lambda: (
        basin(Policy(), load="25%"),
        simulate(Policy(), load="25%", outage="5s", horizon="60s"),
    ),
    "jitter_after_503": lambda: simulate(
        _JITTERED, load="73%", outage=_503, horizon="60s"
    ),
    "at_once_after_503": lambda: simulate(
        _IMMEDIATE, load="73%", outage=_503, horizon="60s"
    ),
}
"""What each picture shows."""


def digest(shown: Simulation | tuple[Basin, Simulation]) -> str:
    """Return the digest of what a picture shows."""
    parts = shown if isinstance(shown, tuple) else (shown,)
    text = json.dumps([each.to_dict() for each in parts])
    return hashlib.sha256(text.encode()).hexdigest()


def main() -> None:
    """Make all pictures."""
    from retrykit.analysis.simulation_charts import basin_figure, load_figure  # noqa: PLC0415

    FOLDER.mkdir(exist_ok=True)
    for name, simulated in PICTURES.items():
        shown = simulated()
        chart = basin_figure(*shown) if isinstance(shown, tuple) else load_figure(shown)
        about = {"Description": digest(shown), "Software": None}
        chart.savefig(FOLDER / f"{name}.png", dpi=80, metadata=about)
        print(f"{name}: {shown[0] if isinstance(shown, tuple) else shown}")


if __name__ == "__main__":
    main()
