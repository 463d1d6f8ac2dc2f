import os
import stat
import threading
from pathlib import Path

import pytest

from anharmonic._files import replacing, write_atomically


@pytest.mark.parametrize("most", [2, 99])
def test_replaces_whole_also_in_pieces(tmp_path, monkeypatch, most):
    path, write = tmp_path / "a", os.write
    monkeypatch.setattr(os, "write", lambda d, data: write(d, data[:most]))
    write_atomically(path, "one")
    write_atomically(path, memoryview(b"two\xff"))
    assert path.read_bytes() == b"two\xff"
    write_atomically(path, "a\udce9ä")  # what is no character is written as its number
    assert path.read_text(encoding="utf-8") == "a\\udce9ä"
    assert os.listdir(tmp_path) == ["a"]


@pytest.fixture
def old(tmp_path):
    """A file that a failed write leaves as it is, and no other."""
    (tmp_path / "a").write_text("old")
    yield tmp_path / "a"
    assert (tmp_path / "a").read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("failing", ["write", "fsync", "replace"])
def test_full_disk_keeps_the_old_file(old, monkeypatch, failing):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, failing, full)
    words = "a must be writable; got No space left on device; free"
    with pytest.raises(OSError, match=words) as caught:
        write_atomically(old, "new")
    assert caught.value.errno == 28


def test_an_error_in_the_block_keeps_the_old_file(old):
    with pytest.raises(RuntimeError), replacing(old) as file:
        file.write(b"new")
        raise RuntimeError


def test_links_are_followed_and_permissions_kept(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "a", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_atomically(link, "new")
    assert link.is_symlink() and target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


@pytest.mark.parametrize(("mask", "mode"), [(0o077, 0o600), (0o022, 0o644)])
def test_new_files_follow_the_umask(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        write_atomically(tmp_path / "a", "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode


def test_devices_and_pipes_are_written_to(tmp_path):
    write_atomically(Path("/dev/null"), "lost")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, "through")
    reader.join()
    assert got == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize(
    "name, error, words",
    [
        (".", IsADirectoryError, "must be writable; got Is a directory"),
        ("there", IsADirectoryError, "must be writable; got Is a directory"),
        ("none/a", OSError, "No such file or directory"),
    ],
)
def test_a_folder_and_a_missing_one_are_refused(tmp_path, monkeypatch, name, error, words):
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=words):
        write_atomically(Path(name), "new")


def test_two_writers_do_not_meet(tmp_path, monkeypatch):
    path, replace, seen = tmp_path / "a", os.replace, []

    def second_first(source, target):
        seen.append(source)
        if len(seen) == 1:
            write_atomically(target, "second")
        replace(source, target)

    monkeypatch.setattr(os, "replace", second_first)
    write_atomically(path, "first")
    assert len(set(seen)) == 2 and path.read_text() == "first"
    assert os.listdir(tmp_path) == ["a"]
