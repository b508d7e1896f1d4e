"""Where the project's folders lie."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
# Beside the package in a checkout (an editable install too); inside it in a wheel.
CONF = next((conf for conf in (PACKAGE.parent / "conf", PACKAGE / "conf") if conf.is_dir()), PACKAGE.parent / "conf")
# Models, caches and results lie in the checkout; an installed wheel keeps them where it is called.
ROOT = PACKAGE.parent if CONF.parent == PACKAGE.parent else Path.cwd()
