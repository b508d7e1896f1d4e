"""A hook of MkDocs: the site has the repository's pages at their own paths, so that their links keep working."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "*.md docs/*.md docs/*.ipynb docs/figures/* tasks/**/*.md models/*/*.md results/**/*.md results/*.html "
    "results/figures/* tests/drill/*.md LICENSE CITATION.cff"
).split()
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s#:]+)(?:#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """All pages, by their paths in the repository."""
    found = {path for pattern in PAGES for path in ROOT.glob(pattern) if "own" not in path.relative_to(ROOT).parts}
    ours = [File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)) for path in sorted(found)]
    theirs = [file for file in files if not (ROOT / "docs" / file.src_uri).is_file()]
    return Files([*theirs, *ours])


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    """Links to code and settings, which are not part of the site, become plain paths."""
    folder = (ROOT / page.file.src_uri).parent

    def kept(found: re.Match[str]) -> str:
        target = (folder / found[2]).resolve()
        there = target.exists() and target.is_relative_to(ROOT)
        outside = there and not files.get_file_from_path(target.relative_to(ROOT).as_posix())
        return found[1] if outside else found[0]

    return LINK.sub(kept, markdown)
