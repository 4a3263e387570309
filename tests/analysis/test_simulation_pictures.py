"""The pictures of simulations in the documents show what is simulated."""

import pytest
from PIL import Image

from benchmarks.simulation_pictures import FOLDER, PICTURES, digest


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.thorough) if "basin" in name else name
        for name in PICTURES
    ],
)
def test_a_picture_shows_what_is_simulated(name):
    with Image.open(FOLDER / f"{name}.png") as picture:
        stored = picture.info["Description"]
    assert digest(PICTURES[name]()) == stored, (
        "make it again: python -m benchmarks.simulation_pictures"
    )


def test_each_picture_is_in_a_document():
    document = (FOLDER.parent / "metastable_failures.md").read_text("utf-8")
    shown = [each for each in FOLDER.iterdir() if f"pictures/{each.name}" in document]
    assert {each.stem for each in shown} == {*PICTURES}
    assert len([*FOLDER.iterdir()]) == len(PICTURES)
