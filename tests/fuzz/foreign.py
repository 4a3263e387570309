"""Target: documents of other systems, as data and as YAML, JSON, HCL and text."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from retrykit.analysis.preview import preview
from retrykit.config import foreign
from tests._support.required import installed
from tests.fuzz.target import Target
from tests.fuzz.values import altered, anything, as_json, maybe, mutated

__all__ = ["TARGETS"]

_DOCUMENTS = json.loads((Path(__file__).parent / "foreign.json").read_text("utf-8"))
_HCL = (Path(__file__).parent / "foreign.tf").read_text("utf-8")
_NAMES = ["", "get", "Get", "routes[0]"]


def _given(random):
    document = random.choice(_DOCUMENTS)
    if isinstance(document, str):
        text = mutated(random, document) if maybe(random, 0.8) else document
        return None, text, ".conf", None, maybe(random, 0.8)
    for _ in range(random.choice([0, 1, 1, 2, 4])):
        document = altered(random, document)
    if maybe(random, 0.05):
        document = anything(random)
    text = None
    if maybe(random, 0.4):
        # JSON is YAML.
        text = as_json(document)
        text = mutated(random, text) if maybe(random, 0.5) else text
    name = random.choice(_NAMES) if maybe(random, 0.1) else None
    suffixes = [".json", ".yaml"] if installed("yaml") else [".json"]
    suffix = random.choice(suffixes)
    if maybe(random, 0.05) and installed("hcl2"):
        text, suffix = mutated(random, _HCL), ".tf"
    return document, text, suffix, name, maybe(random, 0.8)


def _read(given):
    document, text, suffix, name, closest = given
    if text is None:
        return _read_all(document, name, closest=closest)
    with TemporaryDirectory() as folder:
        path = Path(folder, f"policies{suffix}")
        path.write_text(text, "utf-8", errors="replace")
        return _read_all(path, name, closest=closest)


def _read_all(source, name, *, closest):
    # Each is looked for in the whole document.
    names = foreign.names(source)[:20] if name is None else [name]
    return [foreign.read(source, each, closest=closest) for each in names]


def _use(readings, _random):
    for each in readings:
        assert repr(each.policy)
        assert preview(each.policy, retries=10).policy == each.policy


TARGETS = (Target("foreign", 40, _given, _read, _use),)
