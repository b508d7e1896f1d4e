"""SQuAD files into rows: spans, windows, subsets, held-out articles, and everything a file can get wrong."""

import json
import lzma

import pytest
from datasets import Dataset, DatasetDict

from tasks.squad.paragraphs import Paragraph, Question, chosen, parted, read
from tasks.squad.reader import SquadReader, window
from tests.fakes import cases, refuses

pytestmark = pytest.mark.slow

TEXT = (
    "Ida Bell was born in 1,902-foot Arlen. She sold \u201cblue\u201d carts in Roma until May; Tarvel didn't. All wept."
)


def article(title: str, context: str, *asked: tuple[str, ...]) -> dict:
    """An article of one paragraph, and of each question its id, its text and its answers."""
    qas = [
        {"id": id, "question": text, "answers": [{"text": each, "answer_start": context.index(each)} for each in texts]}
        for id, text, *texts in asked
    ]
    return {"title": title, "paragraphs": [{"context": context, "qas": qas}]}


IDA = ("a1", "Where was Ida born?", "Arlen"), ("a2", "What did she sell?", "\u201cblue\u201d carts")
TRAIN = {
    "version": "1.1",
    "data": [
        article("Ida", TEXT, *IDA, ("a3", "How high?", "902-foot")),
        article("Roma", "Roma is old. Roma is big.", ("b1", "What is old?", "Roma")),
        article("Tarvel", "Tarvel wept in May.", ("c1", "Who wept?", "Tarvel"), ("c2", "When?", "in May", "May")),
    ],
}


@pytest.fixture
def folder(tmp_path):
    for split in ("train", "dev", "test"):
        data = json.loads(json.dumps(TRAIN).replace('"id": "', f'"id": "{split}-'))
        (tmp_path / f"{split}.json").write_text(json.dumps(data))
    return tmp_path


def make(folder, **options) -> SquadReader:
    data = {"folder": str(folder), "train": "train.json", "dev": "dev.json", "test": "test.json"}
    return SquadReader({**data, **options.pop("data", {})}, **options)


def load(reader: SquadReader) -> dict[str, list[dict]]:
    return {str(split): rows.to_list() for split, rows in reader.load().items()}


def told(row) -> str:
    """The answer as the row's span cuts it from the text."""
    words = [word for sentence in row["context"] for word in sentence]
    first, last = row["span"]
    return row["text"][row["starts"][first] : row["starts"][last] + len(words[last])]


def test_rows(folder, capsys):
    reader = make(folder)
    rows = load(reader)["train"]
    assert [row["id"] for row in rows] == "train-a1 train-a2 train-a3 train-b1 train-c1 train-c2".split()
    first = rows[0]
    assert first["question"] == "Where was Ida born ?".split()
    assert first["context"][0] == "Ida Bell was born in 1,902 - foot Arlen .".split()
    assert first["context"][1][:5] == ["She", "sold", '"', "blue", '"']
    assert [len(sentence) for sentence in first["context"]] == [10, 15, 3]
    assert [told(row) for row in rows] == ["Arlen", "\u201cblue\u201d carts", "1,902-foot", "Roma", "Tarvel", "in May"]
    assert rows[5]["answers"] == ["in May", "May"]
    assert reader.off_borders["train"] == ["train-a3"]
    said = capsys.readouterr().err
    assert "train: 6 questions about 3 paragraphs; 1 answers (16.7 %) begin or end inside a word" in said
    assert set(reader.vocabularies) == {"words", "chars"}


def test_a_paragraph_as_one_sequence(folder):
    rows = load(make(folder, sequence="paragraph"))["train"]
    assert [len(row["context"]) for row in rows] == [1] * 6
    by_sentence = load(make(folder))["train"]
    for one, other in zip(rows, by_sentence, strict=True):
        assert one["context"][0] == [word for sentence in other["context"] for word in sentence]
        assert one["span"] == other["span"]
    bounded = load(make(folder, sequence="paragraph", train_words=12))["train"]
    assert [[len(part) for part in row["context"]] for row in bounded] == [[10], [15], [10], [8], [5], [5]]


def test_a_batch(folder):
    reader = make(folder)
    rows = load(reader)["train"][::5]
    batch = reader.collate(rows)
    context, asked = batch.texts["context"], batch.texts["question"]
    assert context.words.shape == (2, 28)
    assert context.mask.sum(1).tolist() == [28, 5]
    assert context.parts == [[10, 15, 3], [5]]
    assert asked.mask.sum(1).tolist() == [5, 2]
    assert asked.parts is None
    assert batch.labels["span"].tolist() == [[8, 8], [2, 3]]


def test_words_and_characters_by_number(folder):
    reader = make(folder, min_count=3, char_min_count=9, lower=True)
    reader.load()
    assert "roma" in reader.vocabularies["words"]  # 1 + 2 times: a paragraph counts once, whatever asks about it
    assert "in" in reader.vocabularies["words"]
    assert "ida" not in reader.vocabularies["words"]  # once in the paragraph, once in a question
    assert "a" in reader.vocabularies["chars"]
    assert "k" not in reader.vocabularies["chars"]


@cases("""
    span     | limit | expected
    [0, 3]   | 100 | [0, 4]
    [0, 3]   | 12  | [0, 3]
    [0, 3]   | 11  | [0, 2]
    [0, 3]   | 1   | [0, 1]
    [5, 6]   | 9   | [0, 2]
    [5, 6]   | 8   | [1, 2]
    [12, 13] | 12  | [1, 4]
    [12, 13] | 5   | [2, 4]
    [12, 13] | 4   | [3, 4]
    [5, 9]   | 3   | [1, 3]
""")
def test_windows_of_whole_sentences(span, limit, expected):
    """Of sentences of 5, 4, 3 and 2 words."""
    assert window([5, 4, 3, 2], span, limit) == tuple(expected)


def test_long_contexts_are_bounded_in_training_alone(folder):
    splits = load(make(folder, train_words=12))
    assert [sum(map(len, row["context"])) for row in splits["train"]] == [10, 15, 10, 8, 5, 5]
    assert [told(row) for row in splits["train"]][:3] == ["Arlen", "\u201cblue\u201d carts", "1,902-foot"]
    assert [sum(map(len, row["context"])) for row in splits["dev"]] == [28, 28, 28, 8, 5, 5]


def many(articles: int, paragraphs: int, questions: int) -> list[Paragraph]:
    return [
        Paragraph(f"t{a}", f"{a} {p}", [Question(f"{a}-{p}-{q}", "x", []) for q in range(questions)])
        for a in range(articles)
        for p in range(paragraphs)
    ]


def test_a_subset_is_of_whole_paragraphs_and_the_same_every_time():
    paragraphs = many(20, 10, 5)
    kept = chosen(paragraphs, 98, draw=1)
    assert len(kept) == 20  # 100 questions
    assert kept == [paragraph for paragraph in paragraphs if paragraph in kept]
    assert len({paragraph.title for paragraph in kept}) > 8
    assert chosen(paragraphs, 98, draw=1) == kept != chosen(paragraphs, 98, draw=2)
    assert set(map(str, kept)) < set(map(str, chosen(paragraphs, 200, draw=1)))  # a larger one holds it
    assert chosen(paragraphs, 10**6, draw=1) == paragraphs


def test_a_development_set_is_held_out_by_whole_articles(folder):
    paragraphs = many(20, 10, 5)
    train, dev = parted(paragraphs, 120, draw=1)
    assert len(dev) == 30
    assert not {paragraph.title for paragraph in train} & {paragraph.title for paragraph in dev}
    assert len(train) + len(dev) == 200
    splits = load(make(folder, data={"dev": None}, held_out=1))
    ids = {split: {row["id"][:-1] for row in rows} for split, rows in splits.items()}
    assert len(splits["train"]) + len(splits["dev"]) == len(splits["test"]) == 6
    assert not ids["train"] & ids["dev"]
    for wanted in (0, 1000):
        with refuses(r"cannot be held out: set task\.data\.dev"):
            make(folder, data={"dev": None}, held_out=wanted).load()


@cases(r"""
    before     | after             | words
    "Arlen",   | "Rome",           | bad\.json: question a1: the answer 'Rome' is not
    : 32}      | : 3}              | question a1: .* at 3 \(found at 32\)
    : 32}      | : -5}             | question a1: .* not in its context at -5
    : 32}      | : "3"}            | a1.answers.0.answer_start=3: should be
    "Arlen",   | " ",              | question a1: an answer is empty
    "answers": [{"text": "Arlen", "answer_start": 32}] | "answers": [] | bad\.json: question a1: no answer
    Where was Ida born? | \u200b  | bad\.json: question a1: the question is empty
    Where was Ida born? | "  "     | bad\.json: question a1: the question is empty
    , "question": "Where was Ida born?" | "" | bad\.json: no value for question a1.question
    "a2",      | "c2",             | bad\.json: question c2: the id occurs twice
    "a1",      | 7.5,              | bad\.json: question 7.5.id.str=7.5: should be a valid string
    Roma is old. Roma is big. | \n | bad\.json: question b1: the context is empty
""")
def test_a_question_that_is_not_whole_is_named_with_its_id(folder, before, after, words):
    text = json.dumps(TRAIN)
    assert text.count(before) == 1
    is_refused(folder, text.replace(before, after), words)


@cases(r"""
    content                        | words
    "{\"data\": [\n{\"title\": ]}" | bad\.json:2: not JSON
    "[]"                           | bad\.json: should be a block of keys; is it a SQuAD v1.1 file?
    {"data": []}                   | bad\.json: contains no question
    {"data": [{"paragraphs": [{"qas": []}]}]} | bad\.json: no value for data.0.paragraphs.0.context; is it
    {"data": [{"paragraphs": [{"context": "", "qas": []}], "title": "Roma"}]} | paragraph 1 \(Roma\): the context is
""")
def test_a_file_of_another_layout_is_refused(folder, content, words):
    is_refused(folder, content if isinstance(content, str) else json.dumps(content), words)


def is_refused(folder, content: str, words: str) -> None:
    (folder / "bad.json").write_text(content)
    with refuses(words):
        make(folder, data={"train": "bad.json"}).load()


def test_files_that_are_missing_or_no_text_are_named(folder):
    with refuses(r"nowhere\.json: no such file"):
        make(folder, data={"test": "nowhere.json"}).load()
    with refuses(r"task\.reader\.sequence=word"):
        make(folder, sequence="word")
    (folder / "latin.json").write_bytes('{"data": "é"}'.encode("latin-1"))
    with refuses(r"latin\.json:1: not UTF-8"):
        make(folder, data={"train": "latin.json"}).load()


def test_a_long_context_is_asked_in_windows():
    reader = SquadReader({}, window=5)
    text = "Ann sold carts. Bo left. One " + "one " * 11 + "two. Cy sang in Roma."
    row = reader.from_text(context=text, question="Who sang?")
    rows = reader.windows(row)
    assert [[word for words in part["context"] for word in words] for part in rows] == [
        "Ann sold carts .".split(), "Bo left .".split(), ["One"] + ["one"] * 4, ["one"] * 5, "one one two .".split(),
        "Cy sang in Roma .".split(),
    ]  # fmt: skip
    for key in ("starts", "ends"):
        assert [place for part in rows for place in part[key]] == row[key]
    assert SquadReader({}).windows(row) == [row]


def test_files_of_the_data_set_are_raw_text_too(folder):
    reader = make(folder)
    (folder / "test.json.xz").write_bytes(lzma.compress((folder / "test.json").read_bytes()))
    rows = reader.from_file(str(folder / "test.json.xz"))
    assert [row["id"] for row in rows] == [f"test-{name}" for name in "a1 a2 a3 b1 c1 c2".split()]
    assert not any("answers" in row for row in rows)
    asked = json.loads((folder / "test.json").read_text().replace('"answers"', '"plausible"'))
    (folder / "asked.json").write_text(json.dumps(asked))
    assert reader.from_file(str(folder / "asked.json")) == rows
    answers = [{"answer": str(i), "start": 0} for i in range(6)]
    written = reader.official(answers, rows)
    assert json.loads(written) == {row["id"]: str(i) for i, row in enumerate(rows)}
    gold = {"title": "t", "answers": {"text": ["x"], "answer_start": [0]}}  # as rows of the data set have it
    ids = [reader.from_text(context="x", question="y", id=id, **gold) for id in (None, "1", 7, "")]
    assert json.loads(reader.official(answers[:4], ids)) == {"2": "0", "1": "1", "7": "2", "3": "3"}
    with refuses('needs a distinct "id"'):
        reader.official(answers[:2], [{"id": "a"}, {"id": "a"}])


def test_the_hub_gives_the_same(folder, on_hub):
    rows = []
    for paragraph in read(folder / "test.json"):
        for asked in paragraph.questions:
            answers = {"text": [each.text for each in asked.answers], "answer_start": [e.start for e in asked.answers]}
            row = {"id": asked.id, "title": paragraph.title, "context": paragraph.context}
            rows.append({**row, "question": asked.text, "answers": answers})
    table = Dataset.from_list(rows)
    on_hub(DatasetDict({"train": table, "validation": table}))
    reader = SquadReader({"hub": "rajpurkar/squad", "train": None}, held_out=1)
    assert load(reader)["test"] == load(make(folder))["test"]
    own = SquadReader({"hub": "rajpurkar/squad", "train": None, "dev": str(folder / "test.json")})
    assert [load(own)[split] for split in ("train", "dev")] == [load(reader)["test"]] * 2
    odd = table.remove_columns("answers")
    on_hub(DatasetDict({"train": odd, "validation": odd}))
    with refuses("rajpurkar/squad of the hub, split train, lacks answers"):
        reader.load()


def test_the_official_development_set(data_root):
    paragraphs = read(data_root / "squad" / "dev-v1.1.json.xz")
    assert (len(paragraphs), sum(len(paragraph.questions) for paragraph in paragraphs)) == (2067, 10570)
    reader = SquadReader({})
    rows = list(reader._rows(paragraphs, "test"))
    assert len(rows) == 10570
    assert len(reader.off_borders["test"]) < 0.005 * 10570
    off = set(reader.off_borders["test"])
    for i in range(0, 10570, 7):
        row = rows[i]
        assert (told(row) == row["answers"][0].strip()) is (row["id"] not in off)
