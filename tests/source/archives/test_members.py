"""The tree of an archive's files: names that lead elsewhere or stand for two things, and how many there may be."""

import pytest

from kaudit.source.archives import expanded
from kaudit.source.archives import members as module
from kaudit.source.archives.members import Member, Members, TooManyMembersError
from tests.memory import Memory


def member(size=1, refusal=""):
    return Member(size, 0, lambda: Memory(b""), refusal)


def tree(*names, size=1):
    found = Members(1 << 20)
    for name in names:
        if name.endswith("/"):
            found.directory(name)
        else:
            found.add(name, member(size))
    return found


def entries(found):
    return {
        above: sorted(name if one else f"{name}/" for name, one in own.items()) for above, own in found.entries.items()
    }


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], {"": []}),
        (["a"], {"": ["a"]}),
        (["a/b/c", "a/d"], {"": ["a/"], "a": ["b/", "d"], "a/b": ["c"]}),
        (["a/", "a/b/"], {"": ["a/"], "a": ["b/"], "a/b": []}),
        (["./a//b", "./"], {"": ["a/"], "a": ["b"]}),
        ([".", "/"], {"": []}),
    ],
)
def test_names_are_a_tree(names, expected):
    found = tree(*names)
    assert entries(found) == expected
    assert list(found.refused()) == []


@pytest.mark.parametrize(
    ("names", "refused"),
    [
        (["a/b", "a"], "a"),
        (["a", "a/b"], "a/b"),
        (["a", "a/b/c"], "a/b/c"),
        (["a", "a/"], "a/"),
        (["a", "a/b/"], "a/b/"),
    ],
)
def test_a_name_is_a_file_or_a_directory(names, refused):
    found = tree(*names)
    assert list(found.refused()) == [(refused, "both a file and a directory have this name")]
    assert entries(found) == entries(tree(names[0]))


def test_names_that_lead_out_of_the_archive():
    found = tree("a/../b", "..", "x/..", "../../c", "..d", "e..")
    assert list(found.refused()) == [("a/../b", "its name leads out of the archive (..) (and 3 more)")]
    assert entries(found) == {"": ["..d", "e.."]}


def test_long_names_and_deep_ones():
    reason = "its name has more than 4,096 characters or 64 parts"
    assert list(tree("a" * 4096, "d/" * 63 + "f", "d/" * 64).refused()) == []
    for name in ("a" * 4097, "d/" * 64 + "f", "d/" * 65):
        assert list(tree(name).refused()) == [(name[:40], reason)]


def test_absolute_names_and_repeated_ones_are_noted():
    found = tree("/a", "/b/c", "a", "a")
    assert entries(found) == {"": ["a", "b/"], "b": ["c"]}
    assert list(found.noted()) == [
        ("/a", "its name begins with /: read as a name in the archive, as when unpacking (and 1 more)"),
        ("a", "there more than once: the last is read, as when unpacking (and 1 more)"),
    ]


def test_the_last_file_of_a_name_stays():
    found, last = tree("a"), member(7)
    found.add("a", last)
    assert found.find("a") is found.find("./a") is found.find("/a/") is last
    assert found.find("b") is found.find("a/b") is None
    assert tree("a/b").find("a") is None
    assert tree("a/b/c").find("a//b/./c") is not None


def test_more_files_than_are_listed(monkeypatch):
    monkeypatch.setattr(module, "ARCHIVE_MEMBERS", 3)
    assert len(tree("a", "b/", "c").entries[""]) == 3
    for last in ("d", "d/", "a"):
        with pytest.raises(TooManyMembersError, match="more than 3 files in one archive"):
            tree("a", "b/", "c", last)


@pytest.mark.parametrize(("size", "refused"), [(50, False), (51, True)])
def test_files_that_are_together_larger_than_anybody_packs(monkeypatch, size, refused):
    monkeypatch.setattr(expanded, "ARCHIVE_EXPANDED_BYTES", 100)
    monkeypatch.setattr(expanded, "EXPANSION", 10)
    found = Members(10)
    found.add("a", member(1_000, "a link"))  # takes nothing
    found.add("b", member(50))
    found.add("c", member(size))
    assert (found.find("c") is None) is refused
    assert [name for name, _ in found.refused()] == (["c"] if refused else [])
