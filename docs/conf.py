"""Configuration of Sphinx, which builds the site: ``nox -s docs``."""

import sys
from pathlib import Path

import retrykit

sys.path.insert(0, str(Path(__file__).parent))

project = "retrykit"
author = "The retrykit developers"
copyright = author  # noqa: A001  a name that Sphinx reads
version = release = retrykit.__version__

extensions = [
    "_site.pictures",
    "_site.reference",
    "_site.search",
    "_site.settings",
    "_site.try_it",
    "myst_parser",
    "notfound.extension",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_llms_txt",
]
html_theme = "furo"
html_title = "retrykit"
html_static_path = ["_static"]
html_css_files = ["site.css"]
templates_path = ["_templates"]
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4
default_role = "py:name"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_use_unqualified_type_names = True
napoleon_use_ivar = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
