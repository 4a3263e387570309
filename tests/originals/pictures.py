"""``python -m tests.originals.pictures FOLDER`` draws presets over their originals.

Each picture has the band of a preset and 1,000 draws of its original for each retry. It
needs the extra ``plot`` besides the dependency group ``originals``.
"""

import itertools
import random
import sys
from importlib import import_module
from pathlib import Path

from retrykit.analysis.charts import figure, save
from retrykit.config._preset_names import BUILT_IN
from tests.originals.comparison import ORIGINALS

CALLS, RETRIES = 1_000, 10
CHOSEN = {
    "aws-standard": {"max_attempts": 11},
    "celery": {"max_retries": 10},
    "dramatiq": {"max_retries": 10},
    "google": {},
    "google-api-core": {},
    "httpx-retries": {"backoff_factor": 1},
    "node-retry": {"randomize": True},
    "openai": {"max_retries": 10},
    "redis-py": {},
    "stamina": {},
}


def draw(name: str, settings: dict[str, object], folder: Path) -> None:
    """Draw a preset, with the draws of its original."""
    [original] = [each for each in ORIGINALS if each.preset == name]
    assert original.delays is not None
    chart = figure({name: BUILT_IN[name](**settings)}, retries=RETRIES)
    for seed in range(CALLS):
        random.seed(seed)
        delays = [*itertools.islice(original.delays(**settings), RETRIES)]
        # Beside each other, so that a thousand can be told apart.
        places = [
            retry + (seed / CALLS - 0.5) * 0.6 for retry in range(1, 1 + len(delays))
        ]
        chart.axes[0].plot(places, delays, ".", color="black", markersize=1, alpha=0.4)
    chart.axes[0].set_title(f"{name}: its band, and draws of {original.version()}")
    save(chart, folder / f"{name}.png")


if __name__ == "__main__":
    for path in sorted(Path(__file__).parent.glob("originals_of_*.py")):
        import_module(f"tests.originals.{path.stem}")
    for chosen, parameters in CHOSEN.items():
        draw(chosen, parameters, Path(sys.argv[1]))
