"""YAML is read in one place, within limits: anything else ends in one line that names the file and the line."""

from types import SimpleNamespace

import pytest
from omegaconf import OmegaConf

from elmo_bench.bilm.untrained import UntrainedBilm
from elmo_bench.configuration import composing
from elmo_bench.system import console, places
from elmo_bench.system.storage import yaml_text
from tests.fakes import refuses, table

NINE = ",".join(9 * ["*{}"])
BOMB = "a: &a [x]\n" + "".join(
    f"{one}: &{one} [{NINE.replace('{}', before)}]\n" for before, one in zip("abcdefghi", "bcdefghij", strict=True)
)
WRONG = table(r"""
    "a: &a [*a]"       | :1: not readable YAML (*a is inside its own target)
    "a: [1\nb: }"      | :2: not readable YAML (
    "a: 1\na: 2"       | :2: not readable YAML (found duplicate key a)
    a: !!python/object/apply:os.mkdir [made] | \
        :1: not readable YAML (could not determine a constructor for the tag
    "b: 1\na: !!bool x" | :2: not readable YAML (x is not a valid bool)
    a: !!timestamp x   | :1: not readable YAML (x is not a valid timestamp)
    ~: 1               | : not readable YAML (Incompatible key type 'NoneType')
    a: ${              | : not readable YAML (no viable alternative at input '${')
    "a: \u0000"        | : not readable YAML (unacceptable character #x0000
    - a                | ": expected YAML of the form `key: value`"
""")
LARGE = [
    (BOMB, ":6: not readable YAML (more than 20,000 values, with aliases expanded)"),
    ("a: " + 300 * "[", ":1: not readable YAML (nested more than 40 deep)"),
    ("".join(f"{depth * ' '}a:\n" for depth in range(300)), ":41: not readable YAML (nested more than 40 deep)"),
    ("a: " + 5000 * "9", f":1: not readable YAML ({40 * '9'} is not a valid int)"),
    ("a: 0x" + 99 * "f", f":1: not readable YAML (0x{38 * 'f'} is not a valid int)"),
    ("a: é".encode("latin-1"), ":1: not UTF-8"),
    ("#" * (2 << 20), ": more than 1 MiB of YAML"),
]


@pytest.mark.parametrize("content, message", WRONG + LARGE, ids=range(len(WRONG + LARGE)))
def test_what_is_no_readable_yaml_is_one_line(file, content, message):
    path = file(content if isinstance(content, bytes) else content.encode(), "options.yaml")
    with refuses(f"{path}{message}"):
        yaml_text.read(path)


def test_what_is_readable_is_read_as_omegaconf_reads_it(file):
    path = file("a: &x {b: 1.5e3, c: '${d}'}\nd: 18446744073709551615\ne: {<<: *x, b: 2001-01-01}\n", "page.yaml")
    assert yaml_text.read(path) == OmegaConf.load(path)
    assert yaml_text.read(path).e.b == "2001-01-01"
    path.write_text("")
    assert yaml_text.read(path) == {}
    for page in places.CONF.rglob("*.yaml"):
        yaml_text.read(page)


@pytest.mark.parametrize("content", [BOMB, "a: [1\nb: }", "recipe: 3", "recipe: {options: [1]}"])
def test_sizes_of_an_untrained_bilm_that_cannot_be_read(tmp_path, content, file):
    like = file(content, "like.yaml")
    bilm = SimpleNamespace(options=str(tmp_path / "o.json"), weights=str(tmp_path / "w.hdf5"), like=str(like))
    with refuses(f"^{like}"):
        UntrainedBilm(bilm).recipe()  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("content", [BOMB, "a: [1\nb: }", "a: 1\na: 2", b"a: \xe9"])
def test_a_page_that_hydra_reads_has_the_same_limits(bench, content):
    page = bench.conf / "trainer" / "mine.yaml"
    page.write_bytes(content if isinstance(content, bytes) else f"# @package _global_\n{content}".encode())
    with pytest.raises(Exception) as raised:  # noqa: PT011 (Hydra's, OmegaConf's or YAML's own)
        composing.compose(bench.overrides("trainer=mine"))
    line = console.explain(raised.value)
    assert line is not None
    assert str(page) in line
    assert len(line.splitlines()) == 1
