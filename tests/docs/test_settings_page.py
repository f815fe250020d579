"""The settings' page says what the settings are."""

import re
from pathlib import Path

from app.settings import About, default_of, table

PAGE = (Path(__file__).parents[2] / "docs" / "settings.md").read_text("utf-8")


def row(name: str, about: About) -> tuple[str, str, str]:
    default = default_of(name)
    if isinstance(default, float) and default.is_integer():
        default = int(default)
    shown = about.shown_default or ("none" if default is None else f"`{default}`")
    secret = " A secret: never shown." if about.secret else ""
    return f"BELLRINGER_{name.upper()}", shown, about.doc + secret


def test_the_page_has_every_setting_with_its_default_and_meaning() -> None:
    rows = re.findall(r"^\| `(BELLRINGER_\w+)` \| (.*?) \| (.*) \|$", PAGE, re.MULTILINE)
    assert rows == [row(name, about) for name, about in table().items()]
