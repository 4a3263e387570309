"""Examples of the page "Try it" are run and recorded while the site is built."""

import pytest

from docs._site.recorded_examples import ExampleError, Recording, record

pytestmark = pytest.mark.thorough


def test_what_an_example_prints_is_recorded_in_its_order():
    source = "import sys\nprint(1)\nprint(2, file=sys.stderr)\nprint(3)"
    assert record(source) == Recording("1\n2\n3\n", "")


def test_the_page_that_an_example_writes_is_recorded():
    source = "from pathlib import Path\nPath('a.html').write_text('<p>')"
    assert record(source) == Recording("", "<p>")


def test_the_output_of_a_command_is_recorded():
    recording = record("retrykit show --schedule '1s, 5s'")
    assert recording.output.startswith("default\nretry  seconds")


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        ("print(1)\n\n1 / 0", 3, "failed: 1\nTraceback .*ZeroDivisionError"),
        ("def f():\n    1 / 0\n\n\nf()", 2, "line 5, in <module>"),
        ("print(1)\nprint(", 2, "SyntaxError"),
        ("import sys\nsys.exit(3)", 2, "SystemExit"),
        ("retrykit show nothing", 1, "POLICY must be"),
    ],
    ids=["fails", "in a function", "no program", "exits", "of ours fails"],
)
def test_an_example_that_fails_is_an_error_with_its_line(source, line, message):
    with pytest.raises(ExampleError, match=f"(?s){message}") as caught:
        record(source)
    assert caught.value.line == line
