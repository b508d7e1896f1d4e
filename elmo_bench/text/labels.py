"""The labels of a task by its own names, whatever their names in a source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from elmo_bench.system.errors import UserError, notice
from elmo_bench.text.source import whole_number

if TYPE_CHECKING:
    from elmo_bench.text.source import Table

NO_GOLD = "-"  # as SNLI marks pairs on which the annotators did not agree
UNLABELLED = (NO_GOLD, "hidden", "-1", "None")  # also a null or -1 in a table, and hidden labels


class Labels:
    """Maps the labels of a source to the labels of the task: by name if they have names, else by number.

    Args:
        names: the names of the labels, in the order of their numbers.
        also: alternative names, in the same order.
        given: `task.data.labels`: {name or number in the source: name here}.
    """

    def __init__(self, names: Sequence[str], also: Sequence[str] = (), given: Mapping[Any, Any] | None = None):
        self.names, self.shown = names, also or names
        own = dict(zip(also, names, strict=False)) | {name: name for name in names}
        self.given = {str(theirs): str(ours) for theirs, ours in (given or {}).items()}
        if wrong := [ours for ours in self.given.values() if ours not in own]:
            raise UserError(f"task.data.labels: {wrong[0]!r} is not a label; choose from {', '.join(names)}")
        mapped = {theirs: own[ours] for theirs, ours in self.given.items()}
        self.known = own | dict.fromkeys(UNLABELLED, NO_GOLD) | mapped

    def find(self, label: Any) -> str | None:
        """The label with this name, "-" for no label, or None for an unknown name."""
        return self.known.get(str(label))

    def unknown(self, label: Any) -> str:
        """The message about a label with an unknown name."""
        if label == "":
            return f"no label; choose from {', '.join(self.names)}"
        remedy = f"'+task.data.labels={{{label}: {self.names[0]}, ...}}' maps the names"
        return f"unknown label {label!r}; choose from {', '.join(self.names)}; {remedy}"

    def of_table(self, table: Table, column: str = "label") -> Iterator[str]:
        """The label of each row; prints a line if they are matched by number, or if some names never occur."""
        classes: list[str] | None = getattr(table.rows.features[column], "names", None)
        if foreign := [name for name in classes or () if self.find(name) is None]:
            raise table.unfit(f"has the classes {', '.join(classes or ())}: {self.unknown(foreign[0])}")
        order, numbered, found = classes or self.names, False, set()
        for row, cell in enumerate(table.rows[column]):
            cell = whole_number(cell)  # in CSV a number is text
            if type(cell) is int and 0 <= cell < len(order) and str(cell) not in self.given:
                cell, numbered = order[cell], not classes
            label = self.find(cell)
            if label is None:
                raise table.fault(row, *self.unknown(cell).split("; ", 1))
            found.add(label)
            yield label
        found.discard(NO_GOLD)
        listed = ", ".join(f"{number} ({name})" for number, name in enumerate(self.shown))
        notes = [f"the labels are numbers without names, read as {listed}"] if numbered else []
        if 0 < len(found) < len(self.names):
            occur = [name for name, label in zip(self.shown, self.names, strict=True) if label in found]
            notes.append(f"only {', '.join(occur)} of {', '.join(self.shown)} occur")
        if notes:
            remedy = "'+task.data.labels={THEIRS: OURS, ...}' changes the names"
            notice("; ".join([*notes, remedy]), table.path or table.split)


def warn_disjoint(gold: set[str], predicted: set[str], path: Any) -> None:
    """Prints a notice if two files have no label in common."""
    if gold and predicted and not gold & predicted:
        labels = f"{', '.join(sorted(gold))} against {', '.join(sorted(predicted))}"
        notice(f"no label in common: {labels}; '+task.data.labels={{THEIRS: OURS}}' maps names", path)
