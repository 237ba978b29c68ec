"""Sphinx's settings of the documentation site: `make docs` builds it, with warnings as errors."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import api_pages

import niidpart

project = "niidpart and fltrain"
author = copyright = "the authors of niidpart and fltrain"
version = release = niidpart.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_nb",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "pictures"]

# A word in single backticks is code, as everywhere in the docstrings.
default_role = "code"
autodoc_typehints = "none"  # numpydoc's Parameters sections have the types
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
suppress_warnings = [
    "misc.highlighting_failure",  # blocks that show a command's output are no code
    "config.cache",
]

# The notebooks are kept without their outputs and run whenever the site is built.
nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True

html_theme = "furo"
html_title = "niidpart and fltrain"
html_show_sourcelink = False


def setup(app):
    """Write the API pages before Sphinx looks for pages."""
    app.connect("builder-inited", lambda app: api_pages.write(HERE / "api"))
