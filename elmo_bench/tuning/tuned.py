"""The biLM of `bilm=tuned`: tuned where that has not been done yet, and known by its recipe and its parent."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elmo_bench.bilm.card import CARD, check_folder, read_card
from elmo_bench.bilm.lm import has_softmax, softmax_files
from elmo_bench.configuration.schema import Places, TunedConfig
from elmo_bench.identity.makers import maker
from elmo_bench.identity.settings import Files
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import limits
from elmo_bench.system.storage.hashing import fingerprint, sha256
from elmo_bench.system.storage.locks import held

VERSION = 1  # of the tuning: raised when the same recipe gives another model, rounding aside


class TunedBilm:
    """Tunes a biLM on a task's text.

    Args:
        bilm: names the parent, the task's reader, the numbers and the folder of the result.
        places: its cache_root holds checkpoints.

    Raises:
        UserError: the parent is itself `tuned`, or has no files.
    """

    def __init__(self, bilm: TunedConfig, places: Places):
        self.bilm, self.tuning, self.cache = bilm, bilm.tuning, Path(places.cache_root)
        self.folder, source = Path(bilm.tuning.folder), bilm.tuning.source
        if source.maker == bilm.maker:
            raise UserError(f"bilm.parent={bilm.parent}: name the biLM to be tuned, not a tuned one")
        if not source.options or not source.weights:
            raise UserError(
                f"bilm.parent={bilm.parent} names no files of a biLM; choose another, or give "
                "bilm.tuning.source.options=FILE bilm.tuning.source.weights=FILE"
            )
        self.options, self.weights = Path(source.options), Path(source.weights)
        self.parent = maker(source, places)
        self.again = f"`elmo-bench tune task={self.tuning.task} ... force=true` tunes it again"

    def recipe(self) -> dict[str, Any]:
        """The numbers, the text as the task's reader makes it, and the parent's files or own recipe."""
        text = {**self.tuning.reader, **(self.tuning.text or {})}
        parent = self._files() if self.parent is None else self.parent.recipe()
        return {"tuned": VERSION, **self.tuning.identifying(), "text": text, "parent": parent}

    def make(self, force: bool = False) -> Path:
        """The folder of the tuned biLM.

        Raises:
            UserError: a file of the parent is missing; the folder holds something else; as `check` and `tune`.
        """
        if self.parent is not None:
            self.parent.make()
        self._check_places()
        work = self.cache / "tuning" / fingerprint(os.path.realpath(self.folder))
        with held(work, "biLM: being tuned once for both runs", wait=True):
            if force or not self.check():
                from elmo_bench.tuning.run import tune

                print(f"tuning the biLM {self.bilm.parent} on the text of {self.tuning.task}", flush=True)
                parent = {"name": self.bilm.parent, "sha256": sha256(self.weights)}
                about = {"made": self._made(), "task": self.tuning.task, "parent": parent}
                tune(self.tuning, work, self.folder, about, force)
        return self.folder

    def check(self) -> bool:
        """Whether the tuned biLM is there.

        Raises:
            UserError: its files are damaged, it has another parent, or was made by another recipe or on other text.
        """
        if not self.folder.exists():
            return False
        card = read_card(self.folder, self.again)
        check_folder(self.folder, self.again)
        if fault := self._fault(card):
            raise UserError(fault, self.folder)
        return True

    def _check_places(self) -> None:
        """Raises `UserError` for a missing file of the parent, and for a folder that is not to be replaced."""
        for path in (self.options, self.weights):
            if not path.is_file():
                where = f"; get it: {self.tuning.source.download}" if self.tuning.source.download else ""
                raise UserError(f"{limits.absent(path)}: bilm.parent={self.bilm.parent} names it{where}", path)
        if self.folder.exists() and not (self.folder / CARD).is_file():
            raise UserError("exists, but is not a biLM tuned here (no card.json); give another folder", self.folder)

    def _fault(self, card: Mapping[str, Any]) -> str | None:
        """Why the tuned biLM of a card is not the one that is asked for; None if it is."""
        recorded, present = str((card.get("parent") or {}).get("sha256")), sha256(self.weights)
        if recorded != present:
            return (
                f"was tuned from the biLM with sha256 {recorded[:8]}..., but bilm.parent={self.bilm.parent} has "
                f"{present[:8]}...; restore that one, or {self.again}"
            )
        if card.get("made") != self._made():
            return f"was tuned by another recipe or on other text; {self.again}, another bilm.tuning.folder keeps it"
        return None

    def _made(self) -> str:
        """A hash of the recipe, with the content of its files."""
        return fingerprint(Files({}, self.cache).digested(self.recipe()))

    def _files(self) -> dict[str, str]:
        beside = softmax_files(self.weights.parent) if has_softmax(self.weights.parent) else ()
        named = {path.name: str(path.absolute()) for path in beside}
        return {"options": str(self.options.absolute()), "weights": str(self.weights.absolute()), **named}
