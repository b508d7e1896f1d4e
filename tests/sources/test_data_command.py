"""`elmo-bench data`: files in conf, archives, licences, a folder of the user's, and what it says."""

import errno
import hashlib
import io
import lzma
import sys
import tarfile
from pathlib import Path

import pytest

from elmo_bench.commands.train import Data
from elmo_bench.configuration import composing
from elmo_bench.configuration.composing import RESOLVERS, compose
from elmo_bench.records.missing import check_files
from elmo_bench.sources import make, pages
from elmo_bench.sources.fetch import content_digest, unpack
from elmo_bench.sources.pages import DataSet, Given, Source
from elmo_bench.system import places
from elmo_bench.system.storage.hashing import sha256
from tests.drill.documents import zipped
from tests.fakes import cases, for_each, refuses
from tests.faulty_server import Faulty, serving

TEXT = b"a tree\n"
COMMIT = "c" * 40


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def tar_gz(members: dict[str, bytes], top: str = f"bank-{COMMIT}/", link: str | None = None) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(top + name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        if link:
            info = tarfile.TarInfo(top + link)
            info.type, info.linkname = tarfile.SYMTYPE, "/etc/hostname"
            archive.addfile(info)
    return packed.getvalue()


@pytest.fixture
def page(tmp_path) -> DataSet:
    """A data set that copies one file of an archive."""
    (kept := tmp_path / "kept").mkdir()
    (kept / "a.txt").write_bytes(TEXT)
    return bank(kept, "bank/a.txt.xz")


def bank(folder: Path, name: str, members: str = "*.txt") -> DataSet:
    """A data set that is a.txt of an archive, as it lies in a folder, packed under a name."""
    source = Source(repository="me/bank", commit=COMMIT, members=[members], sha256=content_digest(folder, [members]))
    return DataSet(
        title="A bank", scales=["open"], tasks=["ner"], licence="CC0", sources={"bank": source},
        copy={name: "bank/a.txt"}, files={name: sha256(folder / "a.txt")},
    )  # fmt: skip


@pytest.fixture
def run(page, tmp_path, monkeypatch, capsys):
    """Runs the command with this one file in conf; returns what it prints."""
    monkeypatch.setattr(pages, "load", lambda: {"bank": page})
    monkeypatch.delenv("DATA_ROOT", raising=False)

    def call(*arguments: str) -> str:
        root = f"data_root={tmp_path / 'root'}"
        monkeypatch.setattr("sys.argv", ["elmo-bench data", root, *arguments])
        Data.parse(sys.argv[1:]).run()
        return capsys.readouterr().out

    return call


def test_a_folder_of_archives_is_enough_also_for_a_damaged_file(run, tmp_path, file):
    file(tar_gz({"a.txt": TEXT, "b.bin": b"not needed"}), f"bank-{COMMIT}.tar.gz")
    said = run(f"source={tmp_path}")
    assert "Licence: CC0" in said
    assert "bank: made" in said
    assert lzma.decompress((tmp_path / "root/bank/a.txt.xz").read_bytes()) == TEXT
    assert "licence: CC0" in (tmp_path / "root/LICENCES").read_text()
    assert sorted(path.name for path in (tmp_path / "root").iterdir()) == ["LICENCES", "bank"]
    assert "complete already" in run("source=/")  # nothing is needed any more
    file(lzma.compress(b"another tree\n"), "root/bank/a.txt.xz")
    assert "bank: made" in run(f"source={tmp_path}")


def test_a_data_set_of_files_of_another_is_made_of_an_older_folder_or_of_its_sources(run, page, tmp_path, monkeypatch):
    digests = {"bank/a.txt.xz": digest(TEXT)}
    anew = DataSet(
        title="Anew",
        scales=["open"],
        tasks=["snli"],
        licence="CC0",
        sources={"made": Source(files=digests)},
        copy={"anew/a.txt": "made/bank/a.txt.xz"},
    )
    monkeypatch.setattr(pages, "load", lambda: {"anew": anew, "bank": page})
    with refuses("get it from") as caught:
        run(f"source={tmp_path}", "task=snli")
    assert "bank/a.txt.xz is missing" in str(caught.value)
    (tmp_path / f"bank-{COMMIT}.tar.gz").write_bytes(tar_gz({"a.txt": TEXT}))
    assert "bank: made\nanew: made" in run(f"source={tmp_path}", "task=snli")
    (tmp_path / "root").rename(tmp_path / "old")
    said = run(f"source={tmp_path / 'old'}", "task=snli")
    assert "anew: made" in said
    assert "bank" not in said
    assert sorted(path.name for path in (tmp_path / "root").iterdir()) == ["LICENCES", "anew"]


def test_a_data_folder_from_before_the_split_gets_one_line_with_the_command(tmp_path):
    (made,) = pages.load()["uner_ewt_resplit"].sources.values()
    for name in made.files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    chosen = ["task=ner", "scale=open", "arm=baseline", "vectors=random", f"data_root={tmp_path}"]
    with refuses(f"elmo-bench data scale=open task=ner data_root={tmp_path}"):
        check_files(composing.validated(compose(chosen)))


@pytest.mark.slow
def test_a_mirror_with_an_archive_is_enough(run, tmp_path):
    with serving(Faulty({f"bank-{COMMIT}.tar.gz": tar_gz({"a.txt": TEXT})})) as server:
        assert "bank: made" in run(f"mirror={server.address}/cut-once")


@pytest.mark.parametrize(
    "content",
    [tar_gz({"a.txt": b"another tree\n"}), tar_gz({"a.txt": TEXT})[:-20], b"no archive"],
    ids=["another", "truncated", "none"],  # an archive holds the time at which it was made
)
def test_another_archive_ends_in_one_line_and_is_left_alone(run, tmp_path, content):
    archive = tmp_path / f"bank-{COMMIT}.tar.gz"
    archive.write_bytes(content)
    with refuses():
        run(f"source={tmp_path}")
    assert archive.read_bytes() == content
    assert not (tmp_path / "root/bank").exists()


def test_what_is_missing_is_named_with_its_address_and_licences_are_written_before(run, tmp_path):
    with refuses(f"bank-{COMMIT}.tar.gz: get it from https://codeload.github.com/me/bank"):
        run(f"source={tmp_path}")
    assert (tmp_path / "root/LICENCES").is_file()


def test_licences_keep_what_is_there_and_what_is_added(page, tmp_path):
    (tmp_path / "bank").mkdir()
    (tmp_path / "bank/a.txt.xz").touch()
    other = DataSet(title="Another", scales=["open"], licence="MIT", copy={"other.txt": "x/y"})
    third = DataSet(title="A third", scales=["open"], licence="GPL", copy={"third.txt": "x/y"})
    known = {"bank": page, "other": other, "third": third}
    make.write_licences(known, {"other": other}, {"data_root": tmp_path})
    text = (tmp_path / "LICENCES").read_text()
    assert "CC0" in text
    assert "MIT" in text
    assert "GPL" not in text


@for_each("name", "../out.txt sub/../../out.txt /out.txt")
def test_nothing_is_unpacked_outside_its_folder(tmp_path, name):
    slip, packed = tmp_path / "slip.zip", tmp_path / "slip.tar.gz"
    slip.write_bytes(zipped({name: b"x"}))
    packed.write_bytes(tar_gz({name: b"x"}))
    for path in (slip, packed):
        with refuses("outside its folder"):
            unpack(path, tmp_path / "in/folder", ["*.txt"], 1000)
    assert sorted(path.name for path in tmp_path.rglob("*.txt")) == []


def test_an_archive_with_a_member_without_a_name_is_one_line(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(zipped({"": b"x"}))
    with refuses("cannot be unpacked"):
        unpack(path, tmp_path / "in", ["*"], 1000)


def test_a_disk_that_is_full_is_no_damaged_archive(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "a.zip").write_bytes(zipped({"a.txt": b"x"}))
    monkeypatch.setattr("shutil.copyfileobj", full)
    with refuses("a.txt: no space left"):
        unpack(tmp_path / "a.zip", tmp_path / "in", ["*"], 1000)


def test_links_large_members_and_bombs_are_refused(tmp_path):
    path = tmp_path / "a.tar.gz"
    path.write_bytes(tar_gz({}, link="a.txt"))
    with refuses("is a link"):
        unpack(path, tmp_path / "in", ["*.txt"], 1000)
    path.write_bytes(tar_gz({"a.txt": bytes(range(256)) * 10}))
    with refuses("more bytes than its file in conf.data allows"):
        unpack(path, tmp_path / "in", ["*.txt"], 1000)
    path.write_bytes(tar_gz({"b.bin": bytes(10_000_000)}))
    with refuses("200 times its size"):
        unpack(path, tmp_path / "in", ["*.txt"], 1000)


def test_given_data_are_counted(tmp_path, file):
    asked = Given(get="Ask me.", folder="bank", counts={"a.conll": {"sentences": 2, "tokens": 3}})
    with refuses(r"not there; it cannot be fetched\. Ask me\."):
        make.check_given(asked, tmp_path)
    (tmp_path / "bank").mkdir()
    file("-DOCSTART- O\n\nAnn B\nleft O\n\nOslo B\n", "bank/a.conll")
    make.check_given(asked, tmp_path)
    file("Ann B\n\nOslo B\n", "bank/a.conll")
    with refuses(r"expected 3 tokens \(not 2\)"):
        make.check_given(asked, tmp_path)


def test_documents_below_a_folder_are_counted(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.gold_conll").write_text(
            f"#begin document ({name}); part 000\n{name} 0 0 x\n\n#end document\n"
        )
    assert make.count(tmp_path) == {"documents": 2, "sentences": 2, "tokens": 2}


def test_every_page_names_its_licence_and_pins_its_sources():
    for name, page in pages.load().items():
        assert page.licence, name
        assert page.scales, name
        assert page.given or page.targets, name
        for source in page.sources.values():
            pinned = set(source.files.values()) <= {
                page.files.get(path) for path in source.files for page in pages.load().values()
            }
            assert source.url or len(str(source.commit)) == 40 or (source.is_made and pinned), name
            assert source.files or source.sha256 or name == "elmo_original", name
        if page.convert:
            assert page.files, name


def test_a_misspelt_key_of_a_page_is_named(tmp_path):
    (tmp_path / "a.yaml").write_text("title: A\nlicense: CC0\n")
    with refuses("license"):
        pages.load(tmp_path)


@cases("""
    argument       | said
    scale=mini     | generated
    task=nosuch    | no data to fetch
    sets=nosuch    | no such data set
    source=/nosuch | no such folder
    mirror=ftp://x | begins with https
""")
def test_a_wrong_argument_ends_in_one_line(run, argument, said):
    with refuses(said):
        run(argument)


def test_only_a_folder_that_the_command_made_is_taken_by_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "DATA", tmp_path / "data")
    (tmp_path / "data").mkdir()
    assert RESOLVERS["made"]() is None
    (tmp_path / "data/LICENCES").touch()
    assert RESOLVERS["made"]() == str(tmp_path / "data")


@pytest.mark.slow
def test_the_files_that_open_pages_name_are_those_that_are_made():
    made = {name for page in pages.load().values() if "open" in page.scales for name in page.targets}
    root = Path("R").absolute()
    for task in "coref ner snli squad srl sst5".split():
        named = compose([f"task={task}", "scale=open", "data_root=R"]).task.data
        files = {str(Path(named[split]).relative_to(root)) for split in ("train", "dev", "test") if named.get(split)}
        assert files <= made, task
