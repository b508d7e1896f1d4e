"""Data sets as tables: parquet, JSON lines and CSV, read by `datasets`, with columns by any names."""

import json

import pytest
from datasets import Dataset

from elmo_bench.system.errors import UserError
from tasks.ner.reader import NerReader
from tasks.snli.reader import SnliReader
from tasks.squad.reader import SquadReader
from tasks.sst5.reader import Sst5Reader

ROWS = [{"tokens": ["Ida", "sang", "in", "Oslo"], "ner_tags": ["B-PER", "O", "O", "B-LOC"]},
        {"tokens": ["Rain"], "ner_tags": ["O"]}]  # fmt: skip


def written(folder, ending: str, rows) -> dict[str, str]:
    """The same rows as all splits."""
    if ending == "csv":
        rows = [
            {name: " ".join(cell) if isinstance(cell, list) else cell for name, cell in row.items()} for row in rows
        ]
    table = Dataset.from_list(rows)
    path = folder / f"all.{ending}"
    getattr(table, {"parquet": "to_parquet", "csv": "to_csv", "jsonl": "to_json"}[ending])(str(path))
    return dict.fromkeys(("train", "dev", "test"), str(path))


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_tags_are_read_from_a_table(tmp_path, ending):
    splits = NerReader(written(tmp_path, ending, ROWS), scheme="iob2").load()
    assert list(splits["dev"]["tokens"]) == [row["tokens"] for row in ROWS]
    assert list(splits["test"]["tags"]) == [row["ner_tags"] for row in ROWS]


def test_columns_may_have_other_names(tmp_path):
    rows = [{"words": row["tokens"], "entities": row["ner_tags"]} for row in ROWS]
    data = written(tmp_path, "parquet", rows)
    with pytest.raises(UserError) as error:
        NerReader(data).load()
    for told in ("lacks tags and tokens", "words (", "+task.data.columns.OURS=THEIRS"):
        assert told in str(error.value)
    columns = {"tokens": "words", "ner_tags": "entities"}
    assert NerReader({**data, "columns": columns}).load()["train"][0]["tokens"] == ROWS[0]["tokens"]
    with pytest.raises(UserError, match="has no column nosuch"):
        NerReader({**data, "columns": {"tokens": "nosuch"}}).load()


def test_pairs_sentences_and_questions_are_read_from_tables(tmp_path):
    pairs = [{"premise": "A dog ran.", "hypothesis": "It ran.", "label": label} for label in ("entailment", "neutral")]
    assert SnliReader(written(tmp_path, "parquet", pairs)).load()["dev"]["label"] == ["entailment", "neutral"]
    texts = [{"text": "a fine film", "label": 4}]
    assert Sst5Reader(written(tmp_path, "csv", texts), phrases="sentences").load()["test"]["tokens"] == [
        ["a", "fine", "film"]
    ]
    question = {"id": "q", "title": "t", "context": "Ida sang in Oslo.", "question": "Who sang?",
                "answers": {"text": ["Ida"], "answer_start": [0]}}  # fmt: skip
    read = SquadReader(written(tmp_path, "parquet", [question])).load()["test"]
    assert read[0]["answers"] == ["Ida"]


def test_a_file_that_is_no_table_is_one_line_that_names_it(tmp_path):
    (tmp_path / "all.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(UserError, match="all.parquet: cannot be read as parquet"):
        NerReader(dict.fromkeys(("train", "dev", "test"), str(tmp_path / "all.parquet"))).load()
    data = written(tmp_path, "csv", ROWS) | {"dev": str(tmp_path / "dev.iob2")}
    with pytest.raises(UserError, match="all splits must be tables"):
        NerReader(data).load()
    (tmp_path / "uneven.jsonl").write_text(json.dumps({"tokens": ["a", "b"], "tags": ["O"]}) + "\n")
    with pytest.raises(UserError, match="has 2 tokens and 1 tags in row 0"):
        NerReader(dict.fromkeys(("train", "dev", "test"), str(tmp_path / "uneven.jsonl"))).load()
