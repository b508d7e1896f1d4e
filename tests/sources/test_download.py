"""Fetching by HTTP: every fault of a server resumes or ends in one line, and no wrong byte is ever accepted."""

import hashlib
import io
import random
import socket
from collections.abc import Callable

import pytest
import requests

from elmo_bench.sources.download import Patience, download
from elmo_bench.sources.fetch import SourcePlaces, obtain
from elmo_bench.sources.pages import Source
from tests.fakes import cases, for_each, refuses
from tests.faulty_server import Faulty, serving

CONTENT = random.Random(1).randbytes(300_000)
DIGEST = hashlib.sha256(CONTENT).hexdigest()
LIMIT = 1_000_000
QUICK = Patience(stall=60.0, attempts=3, pause=0.01)


def accept(path):
    return None if path.read_bytes() == CONTENT else "not the file that conf/data names"


@pytest.fixture(scope="module")
def server():
    with serving(Faulty({"a.bin": CONTENT})) as faulty:
        yield faulty


@pytest.fixture
def fetch(server, tmp_path):
    """Fetches the file of the server with a fault; returns its content."""

    def run(fault: str, limit: int = LIMIT, accept: Callable = accept) -> bytes:
        patience = QUICK._replace(stall=0.5) if "stall" in fault else QUICK
        download(f"{server.address}/{fault}/a.bin", tmp_path / "a.bin", limit, accept, patience)
        return (tmp_path / "a.bin").read_bytes()

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", "good redirect slow norange cut cut-once stall stall-once busy-once refuse cut-norange-once".split()
)
def test_what_can_be_fetched_is_whole(fetch, tmp_path, fault):
    assert fetch(fault) == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]


@cases("""
    fault       | said
    missing     | "404"
    busy        | "503"
    wrong       | not the file
    loop        | redirects without end
    file        | neither http nor https .*file:///etc/passwd
    endless     | more than
    cut-norange | broke|ended after
""")
def test_what_cannot_be_fetched_ends_in_one_line(fetch, tmp_path, fault, said):
    with refuses(said):
        fetch(fault)
    assert [path.name for path in tmp_path.iterdir()] == (["a.bin.part"] if fault == "cut-norange" else [])


def test_more_than_the_limit_is_refused_before_it_comes(fetch, tmp_path):
    with refuses("1,000 bytes"):
        fetch("good", 1000)
    assert list(tmp_path.iterdir()) == [] or (tmp_path / "a.bin.part").stat().st_size == 0


@pytest.mark.parametrize("steps", [["https://a", "http://b"], ["https://a", "http://b", "https://c"]])
def test_a_connection_is_encrypted_on_its_whole_way(tmp_path, monkeypatch, steps):
    """Also where it leads back to https: whoever answered in between chose that address."""
    *history, last = [requests.Response() for _ in steps]
    for response, url in zip((*history, last), steps, strict=True):
        response.url, response.status_code, response.raw = url, 200, io.BytesIO(CONTENT)
    last.history = history
    monkeypatch.setattr(requests, "get", lambda *given, **named: last)
    with refuses("https://a: leads to http://b, which is not encrypted"):
        download("https://a", tmp_path / "a.bin", LIMIT, accept, QUICK)
    assert list(tmp_path.iterdir()) == []


def test_no_server_ends_in_one_line(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with refuses("no connection"):
        download(f"http://127.0.0.1:{port}/a.bin", tmp_path / "a.bin", LIMIT, accept, QUICK)


@for_each("fault", "good norange refuse lie-once")
@pytest.mark.parametrize("before", [CONTENT[:100_000], b"of another version", CONTENT, CONTENT + b"more"])
def test_what_an_earlier_command_left_is_gone_on_with_or_thrown_away(server, fetch, file, fault, before):
    server.asked.clear()
    file(before, "a.bin.part")
    assert fetch(fault) == CONTENT


def test_the_rest_alone_is_fetched_again(fetch, file):
    received = []
    file(CONTENT[:-10], "a.bin.part")

    def noted(path):
        received.append(path.stat().st_size)
        return accept(path)

    fetch("good", accept=noted)
    assert received == [len(CONTENT)]


def test_a_mirror_is_asked_first_and_the_public_address_where_it_fails(server, tmp_path, capsys):
    source = Source(url=f"{server.address}/good/a.bin", sha256=DIGEST)
    for mirror in ("missing", "wrong", "good"):
        places = SourcePlaces(tmp_path / mirror, mirror=f"{server.address}/{mirror}", patience=QUICK)
        assert (obtain(source, places) / "a.bin").read_bytes() == CONTENT
    assert capsys.readouterr().err.count("trying the public address") == 2


def test_what_is_there_is_not_fetched_again_unless_it_is_damaged(server, tmp_path, file):
    source, places = Source(url=f"{server.address}/good/a.bin", sha256=DIGEST), SourcePlaces(tmp_path, patience=QUICK)
    server.asked.clear()
    obtain(source, places)
    obtain(source, places)
    assert server.asked.total() == 1
    file(CONTENT[:-1] + b"?", "a.bin")
    assert (obtain(source, places) / "a.bin").read_bytes() == CONTENT
    assert server.asked.total() == 2
