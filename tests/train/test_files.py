import os

import pytest

from anharmonic.train.files import write_atomically


def test_replaces_whole(tmp_path):
    path = tmp_path / "a"
    write_atomically(path, "one")
    write_atomically(path, memoryview(b"two\xff"))
    assert path.read_bytes() == b"two\xff"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("failing", ["write", "fsync", "replace"])
def test_full_disk_keeps_the_old_file(tmp_path, monkeypatch, failing):
    path = tmp_path / "a"
    write_atomically(path, "old")

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, failing, full)
    with pytest.raises(OSError, match="a must be writable; got No space left on device; free") as e:
        write_atomically(path, "new")
    assert e.value.errno == 28
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_missing_folder(tmp_path):
    with pytest.raises(OSError, match="No such file or directory"):
        write_atomically(tmp_path / "no" / "a", "new")


def test_written_in_pieces(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda d, data: write(d, data[:2]))
    write_atomically(tmp_path / "a", "hello")
    assert (tmp_path / "a").read_text() == "hello"


def test_two_writers_do_not_meet(tmp_path, monkeypatch):
    replace, seen = os.replace, []

    def second_first(source, target):
        seen.append(source)
        if len(seen) == 1:
            write_atomically(target, "second")
        replace(source, target)

    monkeypatch.setattr(os, "replace", second_first)
    write_atomically(tmp_path / "a", "first")
    assert len(set(seen)) == 2
    assert (tmp_path / "a").read_text() == "first"
    assert os.listdir(tmp_path) == ["a"]
