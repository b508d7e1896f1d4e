"""Damaged files are found before anything in them is used."""

import json
import os
from functools import partial

import numpy as np
import pytest
import torch

from elmo_bench.bilm import card
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import hashing, integrity, limits, outputs
from elmo_bench.system.storage.files import others, write_bytes
from elmo_bench.system.storage.integrity import check_archive, check_digests, digests
from elmo_bench.system.storage.json_text import sealed
from tests.fakes import cases, for_each, refuses


@pytest.mark.slow
def test_no_flipped_bit_of_an_archive_hides_a_member(tmp_path):
    """A wrong length in the directory of a zip file makes an entry swallow those after it."""
    path = tmp_path / "a.npz"
    np.savez_compressed(path, right=np.ones(9), total=np.ones(9))
    content, found = path.read_bytes(), 0
    for position in range(8 * len(content)):
        changed = bytearray(content)
        changed[position // 8] ^= 1 << position % 8
        path.write_bytes(changed)
        try:
            check_archive(path, "remove it")
        except UserError:
            found += 1
            continue
        with np.load(path) as arrays:
            assert {name: values.sum() for name, values in arrays.items()} == {"right": 9, "total": 9}
    assert found > 4 * len(content)


@for_each("length", "0 10 200 -1")
def test_a_truncated_archive_is_damaged(tmp_path, length):
    path = tmp_path / "a.npz"
    np.savez(path, a=np.arange(100))
    path.write_bytes(path.read_bytes()[:length])
    with refuses(r"a\.npz: damaged"):
        check_archive(path, "remove it")


def test_a_changed_file_does_not_have_its_digest(tmp_path, file):
    file(b"1", "a")
    file(b"2", "b")
    kept = digests(tmp_path, ["a", "b"])
    check_digests(tmp_path, kept, "make it again")
    file(b"3", "b")
    with refuses(r"b: damaged or changed.*make it again"):
        check_digests(tmp_path, kept, "make it again")
    (tmp_path / "a").unlink()
    with refuses(r"a: missing; make it again"):
        check_digests(tmp_path, kept, "make it again")


@cases("""
    mode  | told
    0o755 | null
    0o775 | null
    0o664 | null
    0o757 | may write
    0o666 | may write
""")
def test_what_others_may_write_is_told(tmp_path, monkeypatch, mode, told):
    (path := tmp_path / "file").touch()
    assert others(tmp_path / "none") is None
    path.chmod(int(mode, 8))
    assert told in (others(path) or "") if told else others(path) is None
    monkeypatch.setattr(os, "getegid", lambda: path.stat().st_gid + 1)
    assert (others(path) is None) == (mode == "0o755")


def test_noted_files_and_bilms_that_others_could_have_written_are_made_again(tmp_path):
    noted = tmp_path / "vectors.txt"
    for name in (noted.name, *card.FILES, card.CARD):
        (tmp_path / name).write_text("text")
    integrity.note(noted)
    for name in (noted.name, "vectors.txt.sha256", card.CARD, card.FILES[1]):
        ours = partial(integrity.is_made_here, noted) if noted.name in name else partial(card.is_private, tmp_path)
        assert ours()
        (tmp_path / name).chmod(0o666)
        assert not ours()
        assert integrity.is_as_noted(noted)
        (tmp_path / name).chmod(0o644)


def test_digests_that_others_could_have_written_are_not_remembered(tmp_path, monkeypatch):
    memory, large = tmp_path / "digests.json", tmp_path / "large"
    monkeypatch.setattr(hashing, "REMEMBERED", 0)
    large.write_text("text")
    right = hashing.content_sha256(large, memory)
    key, entry = next(iter(json.loads(memory.read_text()).items()))
    memory.write_text(sealed(json.dumps({key: [*entry[:-1], "0" * 64]}, indent=0) + "\n"))
    for mode, found in ((0o644, "0" * 64), (0o666, right)):
        memory.chmod(mode)
        hashing._remembered.cache_clear()
        assert hashing.content_sha256(large, memory) == found


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_what_belongs_to_another_user_is_told(tmp_path):
    os.chown(tmp_path, 12345, -1)
    assert others(tmp_path) == "it belongs to another user"


def test_an_archive_that_unpacks_to_too_much_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, a=np.zeros(limits.UNPACKED // 8 + 1))
    monkeypatch.setattr("zipfile.ZipFile.testzip", lambda _: pytest.fail("it was unpacked"))
    with refuses(r"a\.npz: unpacks to over 200 times its size; remove it"):
        check_archive(path, "remove it")


def test_numbers_that_are_repeated_and_not_stored_are_no_weights(tmp_path):
    path = tmp_path / "a.ckpt"
    integrity.save_checkpoint({"state_dict": {"w": torch.ones(1, 1).expand(10**6, 10**6)}}, path)
    with refuses("'w' are not dense numbers"):
        integrity.load_checkpoint(path, "remove it")


@for_each("name", "a.npz .a.npz~12345678.partial a.npz.sha256")
def test_nothing_waits_for_a_pipe(tmp_path, name):
    os.mkfifo(tmp_path / name)
    path = tmp_path / "a.npz"
    if name == path.name:
        with refuses("expected a regular file, but it is a pipe"):
            check_archive(path, "remove it")
        return
    assert not integrity.is_as_noted(path)
    write_bytes(path, b"whole")
    assert outputs.mark(tmp_path, name) == b""
