"""Hostile data files through the command line: one clear error, nothing is run, no memory taken.

What is wrong in an array, an archive or a text is in tests/data: test_npz.py, test_archive.py ...
"""

import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.lib import format

Y = np.arange(20) % 2


def archive(*, x, y=Y):
    """Writes d.npz; `x` is the content of a member, or writes into it."""
    with zipfile.ZipFile("d.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        with file.open("y.npy", "w") as member:
            format.write_array(member, y)
        with file.open("x.npy", "w", force_zip64=True) as member:
            x(member)


def test_pickles(refused_by_command, tiny, evil):
    objects = np.array([evil, 1], object)
    for write in (
        lambda member: format.write_array(member, objects, allow_pickle=True),
        lambda member: member.write(pickle.dumps(evil)),
    ):
        archive(x=write)
        refused_by_command("train", "lem", "d.npz", *tiny)


@pytest.mark.slow
@pytest.mark.parametrize("pieces", [1, 250], ids=["cut", "whole"])
def test_gigabytes_of_zeros(pieces, run_python, tiny):
    """A small file; the process may have 4 GB of addresses more than it starts with."""

    def write(member):
        description = {"descr": "<f4", "fortran_order": False, "shape": (20, 12500000, 4)}
        format.write_array_header_1_0(member, description)
        for _ in range(pieces):
            member.write(bytes(16 * 10**6))

    archive(x=write)
    code = "import sys; from anharmonic.cli.main import main; sys.exit(main())"
    done = run_python(code, "train", "lem", "d.npz", *tiny)
    assert done.returncode in (1, 2) and "; got " in done.stderr, done.stderr
    assert "unexpected" not in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_odd_data_train(cli, tiny):
    """One constant step, of the other byte order, with labels that other programs misread."""
    labels = np.array(['a,b"\n', "=1+1", "", "ü✓", " "] * 4)
    for y in (labels, Y > 0):
        np.savez("Ünï ✓ x.npz", x=np.ones((20, 1, 2), ">f8"), y=y)
        code, _, error = cli("train", "lem", "Ünï ✓ x.npz", *tiny)
        assert code == 0, error


PLACES = {
    "a folder": lambda path: path.mkdir(),
    "nothing": lambda path: None,
    "a dangling link": lambda path: path.symlink_to("no"),
    "a pipe": lambda path: os.mkfifo(path),
}


@pytest.mark.covering
@pytest.mark.parametrize("make", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("name", ["d.ts", "d.npz", "d.csv", "d.parquet"])
def test_places(make, name, refused_by_command, tiny):
    make(Path(name))
    refused_by_command("train", "lem", name, *tiny)
