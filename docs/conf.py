"""The site of the pages: `make docs` runs Sphinx from the repository's folder with this file.

Pages stay Markdown that a forge shows too, so links between files are plain paths.
"""

project = "quotaflow"
copyright = "quotaflow contributors"
extensions = ["myst_parser"]
include_patterns = [
    *("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"),
    *("bench/README.md", "broker/README.md", "docs/*.md", "docs/reference/*.md"),
]
exclude_patterns = [".venv", ".git", "src", "build", "dist"]
root_doc = "docs/index"
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = "quotaflow"
html_copy_source = False
html_show_sphinx = False
highlight_language = "text"
myst_heading_anchors = 4
nitpicky = True
