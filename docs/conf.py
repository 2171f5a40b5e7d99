"""Sphinx configuration: `make docs` builds these pages, and every warning is an error."""

import fouriershap

project = "fouriershap"
author = "The fouriershap developers"
version = release = fouriershap.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
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

html_theme = "furo"
html_title = "fouriershap"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["pages.css"]
