"""A biLM's files are those that its card names, or nothing opens them."""

import json
import random
from pathlib import Path

import pytest
import torch

from elmo_bench.bilm import BiLM
from elmo_bench.bilm.card import CARD, FILES, check_files, check_folder, read_card, write_card
from elmo_bench.bilm.lm import BidirectionalLM, load_lm
from elmo_bench.bilm.options import Options
from elmo_bench.bilm.pretraining.run import export
from elmo_bench.commands.use import Embed
from elmo_bench.configuration import composing
from elmo_bench.layers.bilm import BilmLayers
from elmo_bench.mini.bilm import MiniBilm
from elmo_bench.system import places
from elmo_bench.system.storage.json_text import sealed
from tests.damage import flipped
from tests.fakes import cases, for_each, refuses
from tests.tiny_bilm import OPTIONS


def write(folder: Path) -> Path:
    """What pretraining leaves, untrained."""
    folder.mkdir(exist_ok=True)
    words = ["<S>", "</S>", "<UNK>", "ba", "de"]
    export(BidirectionalLM(BiLM(Options.parse(OPTIONS)), len(words)), words, folder)
    write_card(folder, {"updates": 3, "recipe": {}})
    return folder


@pytest.fixture
def folder(tmp_path) -> Path:
    torch.manual_seed(1)
    return write(tmp_path / "bilm")


def test_the_card_names_every_file_and_is_checked(folder):
    card = read_card(folder)
    assert tuple(card["files"]) == FILES
    load_lm(folder)
    bilm = BilmLayers(folder / "options.json", folder / "weights.hdf5")
    assert bilm.sha256 == card["files"]["weights.hdf5"]


@pytest.mark.parametrize("name", FILES)
def test_no_flipped_bit_is_read_and_nothing_without_one_of_the_files(folder, name):
    path, chance = folder / name, random.Random(name)
    content = path.read_bytes()
    for _ in range(40):
        path.write_bytes(flipped(content, chance))
        with refuses(rf"{name}: damaged or changed.* restore it .*train the biLM again"):
            load_lm(folder)
    path.write_bytes(content)
    load_lm(folder)
    path.unlink()
    with refuses(f"{name}: missing"):
        load_lm(folder)


def test_no_flipped_bit_of_the_card_is_read(folder):
    path, chance = folder / CARD, random.Random(1)
    content = path.read_bytes()
    for _ in range(200):
        path.write_bytes(flipped(content, chance))
        with refuses():
            read_card(folder)
    start = content.index(b'"checksum"') + 1  # without it, nothing could be compared
    for place in range(start, start + 8):
        path.write_bytes(content[:place] + bytes([content[place] ^ 2]) + content[place + 1 :])
        with refuses("not the card of a biLM of its checksum"):
            read_card(folder)


@cases("""
    files
    []
    {"weights.hdf5": 3}
    {"weights.hdf5": "abc"}
    x
""")
def test_a_card_whose_files_are_no_digests_is_refused(folder, files):
    (folder / CARD).write_text(sealed(json.dumps({"files": files}, indent=2) + "\n"))
    with refuses(r"card\.json: damaged: `files`"):
        load_lm(folder)


def test_without_a_card_or_in_an_earlier_one_nothing_is_compared(folder, capsys):
    for text in (None, '{"recipe": {}}'):
        (folder / CARD).unlink()
        if text is not None:
            (folder / CARD).write_text(text)
        assert check_files(folder / "weights.hdf5") == {}
        (folder / "vocabulary.txt").write_text("<S>\n</S>\n<UNK>\nba\ndi\n")
        load_lm(folder)
        assert capsys.readouterr().err.count("does not name the sha256") == (text is not None)  # once
        (folder / CARD).touch()


@for_each("model", "mini open")
def test_the_biLMs_of_the_project_are_those_of_their_cards(model):
    check_folder(places.ROOT / "models" / model)


def test_a_command_says_it_in_one_line(folder, tmp_path, refused, file):
    file("ba de\n", "in.txt")
    weights = folder / "weights.hdf5"
    weights.write_bytes(flipped(weights.read_bytes(), random.Random(2)))
    given = f"options={folder}/options.json weights={weights} input={tmp_path}/in.txt output={tmp_path}/out.hdf5"
    assert refused(Embed, *given.split()).startswith(f"error: {weights}: damaged or changed")
    assert not (tmp_path / "out.hdf5").exists()


@pytest.mark.slow
def test_a_mini_biLM_that_is_damaged_or_of_another_recipe_is_trained_again(tmp_path, monkeypatch):
    made = []

    def pretrain(recipe, root, work, output, *rest):
        made.append(output)
        write(output)
        write_card(output, {"recipe": recipe.model_dump(mode="json"), "sha256": {}})

    monkeypatch.setattr("elmo_bench.bilm.pretraining.run.pretrain", pretrain)
    page = composing.run_config(["task=ner", f"scale.folder={tmp_path}"])
    for number, name in enumerate((None, *FILES, CARD), start=1):
        if name is not None:
            path = tmp_path / "bilm" / name
            path.write_bytes(path.read_bytes()[:-9])
        for _ in range(2):
            load_lm(MiniBilm(page.bilm, page).make())
        assert len(made) == number
    card = read_card(tmp_path / "bilm")  # of another recipe
    write_card(tmp_path / "bilm", {**card, "recipe": {**card["recipe"], "tokens": 1}})
    MiniBilm(page.bilm, page).make()
    assert len(made) == number + 1
