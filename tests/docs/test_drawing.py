"""Drawings of the site are made by commands, in a copy of the documented project."""

import pytest

from docs._site.drawing import DrawingError, draw, in_dark

pytestmark = pytest.mark.thorough

WRITE = 'import sys; open(sys.argv[1], "w").write("<svg />")'


def test_a_command_writes_a_drawing_in_a_copy_of_the_project():
    code = f'{WRITE}; open("pyproject.toml")'
    assert draw(f"python -c '{code}' out.svg") == "<svg />"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("", "is made by retrykit or python, got ''"),
        ("curl example.com", "is made by retrykit or python, got 'curl"),
        ("python -c 'raise SystemExit(\"no ink\")'", "failed: no ink"),
        ("retrykit chart nothing -o a.svg", "failed: retrykit: POLICY must be"),
        ("python -c pass", r"must write one \.svg file, got \[\]"),
        (f'python -c \'{WRITE}; open("b.svg", "w")\' a.svg', "must write one"),
    ],
    ids=["nothing", "another program", "fails", "of ours fails", "none", "two"],
)
def test_a_command_without_a_drawing_is_an_error(command, message):
    with pytest.raises(DrawingError, match=message):
        draw(command)


def test_a_drawing_has_the_same_lines_in_dark_colors():
    light = '<svg width="9"><path style="fill: #ffffff; stroke: #000000"/></svg>'
    assert in_dark(light) == (
        '<svg fill="#cfd0d0" width="9">'
        '<path style="fill: #131416; stroke: #cfd0d0"/></svg>'
    )
