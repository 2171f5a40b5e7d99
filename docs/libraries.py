"""Write the tables of supported libraries into pages, from the registry: `python docs/libraries.py`."""

import re
from pathlib import Path

import fouriershap as fs

HERE = Path(__file__).resolve().parent
PAGES = {"trees.md": "supported_trees", "linear.md": "supported_products"}
_TABLE = re.compile(r"(?<=<!-- libraries -->\n).*?(?=<!-- /libraries -->)", flags=re.DOTALL)


def table(attribute: str) -> str:
    """Return a table with a line for each library, of the models that this attribute of a `Library` lists."""
    lines = [
        f"| {library.name} | {'<br>'.join(models)} | {library.tested} |"
        for library in fs.libraries()
        if (models := getattr(library, attribute))
    ]
    return "\n".join(["| library | models that are read | versions tested |", "|---|---|---|", *lines, ""])


def updated(page: str) -> str:
    """Return the text of a page with the table as the registry has it."""
    text = (HERE / page).read_text(encoding="utf-8")
    return _TABLE.sub(lambda _: table(PAGES[page]), text)


if __name__ == "__main__":
    for page in PAGES:
        (HERE / page).write_text(updated(page), encoding="utf-8")
