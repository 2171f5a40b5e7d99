"""Sphinx configuration: `make docs` builds these pages, and every warning is an error."""

import fouriershap

project = "fouriershap"
author = "The fouriershap developers"
version = release = fouriershap.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

autodoc_typehints = "none"  # the docstrings name types and shapes
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = True
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True  # attributes that are properties are described once
default_role = "code"

# Copied is what a reader would type: without prompts, and without what was printed.
copybutton_prompt_text = r">>> |\.\.\. ?|\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
copybutton_remove_prompts = True

html_theme = "furo"
html_title = "fouriershap"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["pages.css"]
