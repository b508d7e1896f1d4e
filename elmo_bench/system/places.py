"""Where the project's folders lie."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
# Whether the package is used from a checkout, as an editable install does, or from an installed wheel.
CHECKOUT = (PACKAGE.parent / "pyproject.toml").is_file() and (PACKAGE.parent / "conf").is_dir()
# How a message asks for the data.
DATA_ROOT = "data_root=FOLDER" + (" (make: DATA_ROOT=FOLDER)" if CHECKOUT else "")
# Beside the package in a checkout, inside it in a wheel.
CONF = (PACKAGE.parent if CHECKOUT else PACKAGE) / "conf"
# Models, caches and results lie in the checkout; an installed wheel keeps them where it is called.
ROOT = PACKAGE.parent if CHECKOUT else Path.cwd()
