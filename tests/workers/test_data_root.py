"""No text of a request leads to a file outside the data root."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workers.data_root import resolve_paths
from workers.errors import DataError, DataNotFound, PathRefused

LOC = ("data", "train")


def touch(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data root with neighbours, and with links that stay inside, lead out and go round."""
    top = tmp_path_factory.mktemp("top")
    root = top / "root"
    for name in ("a.parquet", "b.parquet", "data[1].parquet", "data1.parquet", "sub/c.parquet", "sub/deep/d.parquet"):
        touch(root / name)
    for name in ("notes.txt", "texts/readme.txt", "hive/year=2020/e.parquet", "hive/year=2021/f.parquet"):
        touch(root / name)
    (root / "empty").mkdir()
    touch(top / "outside/secret.parquet")
    touch(top / "root-other/g.parquet")
    (root / "inner.parquet").symlink_to(root / "sub/c.parquet")
    (root / "out.parquet").symlink_to(top / "outside/secret.parquet")
    (root / "gone.parquet").symlink_to(top / "outside/never.parquet")
    (root / "out").symlink_to(top / "outside")
    (root / "circle").symlink_to(root / "circle")
    (root / "linked").mkdir()
    (root / "linked/secret.parquet").symlink_to(top / "outside/secret.parquet")
    return root


def found(root: Path, texts: str | list[str]) -> list[str]:
    return [str(Path(path).relative_to(root)) for path in resolve_paths(root, texts, LOC)]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ("a.parquet", ["a.parquet"]),
        ("notes.txt", ["notes.txt"]),  # a file named outright may have any name
        ("sub/../a.parquet", ["a.parquet"]),
        ("sub//c.parquet", ["sub/c.parquet"]),
        ("../root/a.parquet", ["a.parquet"]),
        ("inner.parquet", ["sub/c.parquet"]),
        ("sub", ["sub/c.parquet", "sub/deep/d.parquet"]),
        ("sub/", ["sub/c.parquet", "sub/deep/d.parquet"]),
        ("sub/*.parquet", ["sub/c.parquet"]),
        ("sub/**/*.parquet", ["sub/c.parquet", "sub/deep/d.parquet"]),
        ("[ab].parquet", ["a.parquet", "b.parquet"]),
        ("?.parquet", ["a.parquet", "b.parquet"]),
        ("data[1].parquet", ["data[1].parquet"]),  # the file of that name, not what it matches
        ("data[0-9].parquet", ["data1.parquet"]),
        (["b.parquet", "a.parquet", "[ab].parquet"], ["a.parquet", "b.parquet"]),
        (["inner.parquet", "sub/c.parquet"], ["sub/c.parquet"]),
        ("hive/year=2020", ["hive/year=2020/e.parquet"]),  # asked for by name, as the refusal below advises
        ("hive/year=2020/*", ["hive/year=2020/e.parquet"]),
        (["hive/year=2020/e.parquet", "hive/year=2021/f.parquet"],) * 2,
    ],
)
def test_what_is_found(root: Path, texts: str | list[str], expected: list[str]):
    assert found(root, texts) == expected


def test_an_absolute_path_inside_is_found(root: Path):
    assert found(root, str(root / "sub/c.parquet")) == ["sub/c.parquet"]


def test_a_root_that_is_a_link_is_resolved(root: Path, tmp_path: Path):
    (tmp_path / "link").symlink_to(root)
    assert resolve_paths(tmp_path / "link", "a.parquet", LOC) == (str(root / "a.parquet"),)


@pytest.mark.parametrize(
    "text",
    [
        "../outside/secret.parquet",
        "../root-other/g.parquet",  # its name begins with the root's
        "../../../../../../../../etc/passwd",
        "sub/../../outside/secret.parquet",
        "/etc/passwd",
        "/",
        "..",
        "//proc/self/root",
        "//proc/self/root/etc/passwd",
        "/proc/self/cwd",
        "out.parquet",
        "gone.parquet",
        "out",
        "out/secret.parquet",
        "out/never.parquet",  # whether it is there must not show
        "linked",
        "linked/*",
        "out/*",
        "out/never*",
        "out*/*.parquet",
        "../*/secret.parquet",
        "/etc/*",
        "//proc/self/root/*",
        "sub/../../outside/*",
        "circle",
        "circle/a.parquet",
        "http://169.254.169.254/latest/meta-data",
        "https://example.org/a.parquet",
        "file:///etc/passwd",
        "s3://bucket/a.parquet",
        "",
        "  ",
        "a.parquet\0",
        "\0/etc/passwd",
        "sub/\0*",
        "\ud800",
        "a**b",
        "x" * 300,
        "x" * 300 + "/*",
        "x/" * 3000,
        "*/" * 3000,
    ],
)
def test_what_is_refused(root: Path, text: str):
    with pytest.raises(PathRefused) as caught:
        resolve_paths(root, text, LOC)
    assert caught.value.loc == LOC
    assert repr(text) in caught.value.message
    assert str(root.parent) not in caught.value.message.replace(repr(text), "")


@pytest.mark.parametrize(
    "text", ["never.parquet", "sub/never.parquet", "a.parquet/b", "empty", "texts", "never/*", "*.csv", "**", "~"]
)
def test_what_is_not_there(root: Path, text: str):
    with pytest.raises(DataNotFound) as caught:
        resolve_paths(root, text, LOC)
    assert repr(text) in caught.value.message


@pytest.mark.parametrize("text", ["hive", "hive/*/*.parquet", "hive/**/*.parquet", "hive/year=*/*", "**/e.parquet"])
def test_hive_partitions_are_refused(root: Path, text: str):
    with pytest.raises(DataError, match=r"hive partitions \('.*year=202") as caught:
        resolve_paths(root, text, LOC)
    assert "list its files" in caught.value.message


def test_a_place_in_a_list_is_named(root: Path):
    with pytest.raises(DataNotFound) as caught:
        resolve_paths(root, ["a.parquet", "never.parquet"], LOC)
    assert caught.value.loc == ("data", "train", 1)


def test_an_empty_list_is_refused(root: Path):
    with pytest.raises(DataNotFound, match="at least one path"):
        resolve_paths(root, [], LOC)


def test_a_root_that_is_gone(root: Path, tmp_path: Path):
    with pytest.raises(DataNotFound):
        resolve_paths(tmp_path / "never", "a.parquet", LOC)


PARTS = st.sampled_from(
    [
        *("..", "...", ".", "", "~", "*", "**", "?*", "[!x]*", "[", "out", "out.parquet", "%2e%2e"),
        *("circle", "linked", "sub", "a.parquet", "inner.parquet", "secret.parquet", "hive", "year=2020"),
        *("gone.parquet", "outside", "root", "root-other", "etc", "passwd", "proc", "self", "s3:", "\\"),
        *("\0", "\ud800", "．．"),
    ]
)  # fmt: skip
TEXTS = st.one_of(st.lists(PARTS | st.text(max_size=4), max_size=7).map("/".join), st.text(max_size=40))


def found_or_refused(root: Path, text: str) -> tuple[str, ...] | None:
    try:
        return resolve_paths(root, text, LOC)
    except DataError:
        return None


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS, from_root=st.booleans())
def test_no_text_leads_out(root: Path, text: str, from_root: bool):
    text = f"{root}/{text}" if from_root else text
    paths = found_or_refused(root, text)
    assert paths is None or len(paths) > 0
    for path in map(Path, paths or ()):
        assert path.is_file()
        assert path.resolve() == path
        assert path.is_relative_to(root)
