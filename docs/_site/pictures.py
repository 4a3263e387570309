"""The directive ``{picture}``: a picture that a command makes while the site is built.

Its body is the command, so that a page shows it where directives are not known::

    ```{picture}
    :alt: The delays of the default policy double until they reach a minute

    retrykit chart -o delays.svg
    ```

The command writes one SVG, as in `_site.drawing`. The directive ``{sequence}`` draws
what a scenario of `_site.sequences` sends, and has the same as text below::

    ```{sequence} circuit_breaker
    ```

If the command or the scenario fails, so does the build.
"""

import os.path
from pathlib import Path
from typing import Final

from _site.drawing import DrawingError, draw, in_dark
from _site.sequence_drawing import draw_sequence
from _site.sequences import SCENARIOS, SequenceError, record
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

__all__ = ["Picture", "SequencePicture", "setup"]


class Picture(SphinxDirective):
    """A figure with the picture of a command, and the command of `retrykit` below."""

    has_content = True
    option_spec = {"alt": directives.unchanged_required}  # noqa: RUF012  as Sphinx has it

    def run(self) -> list[nodes.Node]:
        """Make the picture, and return its figure."""
        if not self.options.get("alt"):
            msg = "a picture must have an :alt: that says what it shows"
            raise self.error(msg)
        command = " ".join(self.content)
        try:
            svg = draw(command)
        except DrawingError as error:
            raise self.error(str(error)) from error
        figure = self.figure(svg, self.options["alt"])
        if command.startswith("retrykit "):
            figure += nodes.caption("", "", nodes.literal(command, command))
        return [figure]

    def figure(self, svg: str, alt: str) -> nodes.figure:
        """Return a figure of two pictures: for a light page and for a dark one."""
        page = self.env.docname.replace("/", "-")
        name = f"{page}-{self.env.new_serialno('picture')}"
        return nodes.figure(
            "",
            self.image(name, svg, alt, "only-light"),
            self.image(f"{name}-dark", in_dark(svg), alt, "only-dark"),
        )

    def image(self, name: str, svg: str, alt: str, shown: str) -> nodes.image:
        """Write a picture beside the doctrees, and return its node."""
        file = Path(self.env.doctreedir) / "pictures" / f"{name}.svg"
        file.parent.mkdir(exist_ok=True)
        file.write_text(svg, "utf-8")
        uri = "/" + os.path.relpath(file, self.env.srcdir).replace(os.sep, "/")
        return nodes.image(uri=uri, alt=alt, classes=[shown])


class SequencePicture(Picture):
    """A figure with the messages of a scenario, and the same as text below."""

    has_content = False
    required_arguments = 1
    option_spec = {}  # noqa: RUF012  as Sphinx has it

    def run(self) -> list[nodes.Node]:
        """Run the scenario, and return its figure and its text."""
        name = self.arguments[0]
        try:
            sequence = record(name)
        except SequenceError as error:
            raise self.error(str(error)) from error
        scenario = SCENARIOS / f"{name}.py"
        self.env.note_dependency(str(scenario))
        alt = f"Messages between {', '.join(sequence.parties)}; the text below has them"
        steps = "\n".join(map(str, sequence.steps))
        text = _SEQUENCE_TEXT.format(steps=steps, program=scenario.read_text("utf-8"))
        figure = self.figure(draw_sequence(sequence), alt)
        return [figure, *self.parse_text_to_nodes(text)]


_SEQUENCE_TEXT: Final = """\
:::{{dropdown}} As text, and the program that was recorded
```text
{steps}
```

```{{code-block}} python
{program}
```
:::
"""


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive with Sphinx."""
    app.add_directive("picture", Picture)
    app.add_directive("sequence", SequencePicture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
