"""SQuAD files into rows: spans, windows, subsets, held-out articles, and everything a file can get wrong."""

import copy
import json
import lzma

import pytest
from datasets import Dataset, DatasetDict

from elmo_bench.system.errors import UserError
from tasks.squad.paragraphs import Paragraph, Question, chosen, parted, read
from tasks.squad.reader import SquadReader, window

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
    assert [row["id"] for row in rows] == ["train-a1", "train-a2", "train-a3", "train-b1", "train-c1", "train-c2"]
    first = rows[0]
    assert first["question"] == ["Where", "was", "Ida", "born", "?"]
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
    assert reader.collate([rows[0], reader.from_text(context="x y", question="z")]).labels == {}


def test_words_and_characters_by_number(folder):
    reader = make(folder, min_count=3, char_min_count=9, lower=True)
    reader.load()
    assert "roma" in reader.vocabularies["words"]  # 1 + 2 times: a paragraph counts once, whatever asks about it
    assert "in" in reader.vocabularies["words"]
    assert "ida" not in reader.vocabularies["words"]  # once in the paragraph, once in a question
    assert "a" in reader.vocabularies["chars"]
    assert "k" not in reader.vocabularies["chars"]


@pytest.mark.parametrize(
    ("span", "limit", "expected"),
    [
        ((0, 3), 100, (0, 4)), ((0, 3), 12, (0, 3)), ((0, 3), 11, (0, 2)), ((0, 3), 1, (0, 1)), ((5, 6), 9, (0, 2)),
        ((5, 6), 8, (1, 2)), ((12, 13), 12, (1, 4)), ((12, 13), 5, (2, 4)), ((12, 13), 4, (3, 4)), ((5, 9), 3, (1, 3)),
    ],
)  # fmt: skip
def test_windows_of_whole_sentences(span, limit, expected):
    """Of sentences of 5, 4, 3 and 2 words."""
    assert window([5, 4, 3, 2], span, limit) == expected


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
        with pytest.raises(UserError, match=r"cannot be held out: set task\.data\.dev"):
            make(folder, data={"dev": None}, held_out=wanted).load()


def spoil(change) -> str:
    data = copy.deepcopy(TRAIN)
    change(data["data"])
    return json.dumps(data)


def qa(data, i=0) -> dict:
    return data[0]["paragraphs"][0]["qas"][i]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"data": [\n{"title": ]}', r"bad\.json:2: not JSON"),
        ("[" * 100000, r"bad\.json: not readable JSON"),
        ("[]", r"bad\.json: should be a block of keys; is it a SQuAD v1.1 file?"),
        ('{"data": []}', r"bad\.json: contains no question"),
        ('{"data": [{"paragraphs": [{"qas": []}]}]}', r"bad\.json: no value for data.0.paragraphs.0.context; is it"),
        (spoil(lambda d: qa(d)["answers"][0].update(text="Rome")), r"bad\.json: question a1: the answer 'Rome' is not"),
        (spoil(lambda d: qa(d)["answers"][0].update(answer_start=3)), r"question a1: .* at 3 \(found at 32\)"),
        (spoil(lambda d: qa(d)["answers"][0].update(answer_start=-5)), r"question a1: .* not in its context at -5"),
        (spoil(lambda d: qa(d)["answers"][0].update(answer_start="3")), r"a1.answers.0.answer_start=3: should be"),
        (spoil(lambda d: qa(d)["answers"][0].update(text=" ", answer_start=3)), r"question a1: an answer is empty"),
        (spoil(lambda d: qa(d).update(answers=[])), r"bad\.json: question a1: no answer"),
        (spoil(lambda d: qa(d).update(question="\u200b")), r"bad\.json: question a1: the question is empty"),
        (spoil(lambda d: qa(d).update(question="  ")), r"bad\.json: question a1: the question is empty"),
        (spoil(lambda d: qa(d).pop("question")), r"bad\.json: no value for question a1.question"),
        (spoil(lambda d: qa(d, 1).update(id="c2")), r"bad\.json: question c2: the id occurs twice"),
        (spoil(lambda d: qa(d).update(id=7.5)), r"bad\.json: question 7.5.id.str=7.5: should be a valid string"),
        (spoil(lambda d: d[1]["paragraphs"][0].update(context=" \n")), r"bad\.json: question b1: the context is empty"),
        (spoil(lambda d: d[1]["paragraphs"][0].update(context="", qas=[])), r"paragraph 2 \(Roma\): the context is"),
    ],
)  # fmt: skip
def test_bad_files_are_named_with_the_id(folder, content, words):
    (folder / "bad.json").write_text(content)
    with pytest.raises(UserError, match=words) as caught:
        make(folder, data={"train": "bad.json"}).load()
    assert "\n" not in str(caught.value)


def test_files_that_are_missing_or_no_text_are_named(folder):
    with pytest.raises(UserError, match=r"nowhere\.json: no such file"):
        make(folder, data={"test": "nowhere.json"}).load()
    with pytest.raises(UserError, match=r"no file is named for test"):
        make(folder, data={"test": None}).load()
    with pytest.raises(UserError, match=r"task\.reader\.sequence=word"):
        make(folder, sequence="word")
    (folder / "latin.json").write_bytes('{"data": "é"}'.encode("latin-1"))
    with pytest.raises(UserError, match=r"latin\.json:1: not UTF-8"):
        make(folder, data={"train": "latin.json"}).load()


def test_raw_text(folder):
    reader = make(folder)
    row = reader.from_text(context=TEXT, question="Who sold carts?", id="q")
    assert row["question"] == ["Who", "sold", "carts", "?"]
    assert row["span"] is None
    assert "answers" not in row
    assert sum(map(len, row["context"])) == len(row["starts"]) == 28


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
    assert [row["id"] for row in rows] == [f"test-{name}" for name in ("a1", "a2", "a3", "b1", "c1", "c2")]
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
    with pytest.raises(UserError, match='needs an "id" of its own'):
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
    with pytest.raises(UserError, match="rajpurkar/squad of the hub, split train, lacks answers"):
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
