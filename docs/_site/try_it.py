"""The directive ``{try-it}``: an example that the reader changes and runs on the page.

Its body is a program, or a command of `retrykit`::

    ```{try-it}
    print("Hello!")
    ```

The page shows what it printed while the site was built, and the HTML page that it
wrote. If it fails, so does the build. Where there is Python for browsers, which
`nox -s docs` adds to the site, a script replaces all of this by an editor.
"""

import html
from pathlib import Path

from _site.recorded_examples import ExampleError, record
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

__all__ = ["TryIt", "setup"]

_CLASS = "try-it"


class TryIt(SphinxDirective):
    """An example, what it printed, and the page that it wrote."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Run the example, and return its nodes."""
        # What it prints depends on the whole package.
        self.env.note_reread()
        source = "\n".join(self.content)
        try:
            recording = record(source)
        except ExampleError as error:
            # MyST counts the offset from the line of the fence.
            line = self.lineno + self.content_offset + error.line
            return [self.state_machine.reporter.error(str(error), line=line)]
        language = "sh" if source.startswith("retrykit ") else "python"
        example = nodes.container(classes=[_CLASS])
        example += nodes.literal_block(source, source, language=language)
        example += nodes.paragraph("", "prints:")
        example += nodes.literal_block(
            recording.output, recording.output, language="text"
        )
        if recording.page:
            example += nodes.raw("", show_page(recording.page), format="html")
        return [example]


def show_page(page: str) -> str:
    """Return a frame with a page, whose script can reach nothing outside of it."""
    return (
        '<iframe title="The page that the example wrote" sandbox="allow-scripts" '
        f'loading="lazy" srcdoc="{html.escape(page)}"></iframe>'
    )


def add_python(app: Sphinx) -> None:
    """Add the folder of Python for browsers to those of static files."""
    if app.config.try_it_python:
        python = Path(app.config.try_it_python).resolve()
        app.config.html_static_path.append(str(python))


def add_script(
    app: Sphinx,
    _page: str,
    _template: str,
    _context: dict[str, object],
    doctree: nodes.document | None,
) -> None:
    """Add style and script to a page that has examples."""
    containers = doctree.findall(nodes.container) if doctree else ()
    if any(_CLASS in each["classes"] for each in containers):
        app.add_css_file("try_it/try_it.css")
        if app.config.try_it_python:
            # Browsers do not load a module from a file, nor can they run Python then.
            app.add_js_file("try_it/try_it.mjs", type="module")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive with Sphinx, and the option ``try_it_python``."""
    app.add_directive(_CLASS, TryIt)
    app.add_config_value("try_it_python", "", "html", str)
    app.connect("builder-inited", add_python)
    app.connect("html-page-context", add_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
