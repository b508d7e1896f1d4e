"""Studies: what they are written as, and what is left out; what runs cost."""

import json
from types import SimpleNamespace
from typing import Any

from elmo_bench.records import studies
from elmo_bench.records.studies import StudyCell, StudyRecord
from elmo_bench.records.times import on_one_processor
from elmo_bench.system.storage.json_text import sealed
from tests.fakes import cases, refuses

STUDY = StudyRecord(
    "mini", "wsd", "senses", "", [StudyCell("a", "F1", 1.23456, 2, 1, low=1, high=2)], "mini", 5, {"sentences": 3}
)


def test_a_study_is_read_as_it_was_written_and_names_its_cells_shortly(tmp_path):
    made = studies.write(STUDY, tmp_path, {"seconds": 3.5})
    assert made.cells == [StudyCell("a", "F1", 1.2346, 2, 1, low=1, high=2)]
    assert studies.read_all(tmp_path) == [made]
    assert (made.title, made.settings) == ("Table 5: senses, scale mini, biLM mini", {"sentences": 3})
    page = json.loads(made.place(tmp_path).read_text())
    assert page["seconds"] == 3.5
    assert set(page["cells"][0]) == {"source", "quantity", "value", "layer", "minus", "low", "high"}


@cases(r"""
    change                             | said
    {"cells": ["x"]}                   | cells.0=x: should be a block of keys
    {"cells": [{"source": "a"}]}       | no value for cells.0.quantity
    {"what": 3}                        | what=3: should be a
    {"cells": [{"source": "a", "quantity": "F1", "value": "+2.6 points"}]} | cells.0.value=
    {"cells": [{"source": "a", "quantity": "F1", "value": 2.0, "low": 1.0}]} | \
        the interval of F1 of a does not contain its value
    {"cells": [{"source": "a", "quantity": "F1", "value": 2.0, "low": -1e308, "high": 1e308}]} | cells.0.low=
    {"scale": "open"}                  | this study belongs at analysis/open
    {"study": "../wsd"}                | study=
    {"settings": {}}                   | this study belongs at
""")
def test_what_does_not_fit_its_place_or_form_is_left_out_aloud(tmp_path, capsys, change, said):
    path = STUDY.place(tmp_path)
    studies.write(STUDY, tmp_path)
    page = {key: value for key, value in json.loads(path.read_text()).items() if key != "checksum"}
    path.write_text(sealed(json.dumps(page | change, indent=1) + "\n"))
    assert studies.read_all(tmp_path) == []
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"left out: {path}: ")
    assert said in line


def test_a_copy_under_another_name_does_not_count_and_a_damaged_file_is_an_error(tmp_path, capsys):
    path = STUDY.place(tmp_path)
    studies.write(STUDY, tmp_path)
    path.with_name("zzz.json").write_bytes(path.read_bytes())
    assert len(studies.read_all(tmp_path)) == 1
    assert "zzz.json: this study belongs at" in capsys.readouterr().err
    path.write_text(path.read_text().replace("1.2346", "9.2346"))
    with refuses("damaged or changed"):
        studies.read_all(tmp_path)


# What runs cost.


def runs(*processors: str) -> list[Any]:
    return [SimpleNamespace(machine={"cpu": name}) for name in processors]


def test_times_are_compared_on_the_processor_that_all_have_and_most():
    first, second = runs("A", "A", "A", "B", "C"), runs("B", "C", "C", "D")
    assert on_one_processor(first, second) == ("C", [first[4:], second[1:3]])
    assert on_one_processor(first[:3], second) == ("", [first[:3], second])
