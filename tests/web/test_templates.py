"""Rules that the strict policy and the keyboard need of every template, and vendored files that are what they say."""

import hashlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))


@pytest.mark.mission("B9")
@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_template_needs_no_inline_code(path: Path) -> None:
    text = path.read_text()

    assert not re.search(r"\bhx-on|\bon[a-z]+=\"|js:|javascript:|<style|style=\"|https?://", text)
    assert not re.search(r"<script(?![^>]* src=\"/static/)", text)
    assert not re.search(r"hx-trigger=\"[^\"]*\[", text), "filters are evaluated code"


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_swaps_has_an_id_so_that_the_focus_survives(path: Path) -> None:
    for tag in re.findall(r"<(?:button|input|select|a)\b[^>]*\bhx-(?:get|post)=[^>]*>", path.read_text()):
        assert re.search(r"\bid=\"", tag), tag


def test_vendored_files_are_what_their_hashes_say() -> None:
    folder = ROOT / "static" / "vendor"
    lines = (folder / "SHA256SUMS").read_text().split("\n")

    listed = {name: digest for digest, name in (line.split(maxsplit=1) for line in lines if line)}

    assert listed == {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.glob("*.js")}
