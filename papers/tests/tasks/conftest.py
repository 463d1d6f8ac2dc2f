"""Archives and recordings as their sources have them, made small."""

import io
import tarfile
import wave
import zipfile

import pytest


@pytest.fixture
def zipped(tmp_path):
    """Writes files into a zip archive."""

    def write(name, files):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for file, content in files.items():
                archive.writestr(file, content)
        return tmp_path / name

    return write


@pytest.fixture
def tarred(tmp_path):
    """Writes files into a compressed tar archive."""

    def write(name, files):
        with tarfile.open(tmp_path / name, "w:gz") as archive:
            for file, content in files.items():
                member = tarfile.TarInfo(file)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        return tmp_path / name

    return write


@pytest.fixture
def sound():
    """The bytes of a WAV file."""

    def make(samples, rate):
        made = io.BytesIO()
        with wave.open(made, "wb") as file:
            file.setparams((1, 2, rate, len(samples), "NONE", ""))
            file.writeframes(samples.astype("<i2").tobytes())
        return made.getvalue()

    return make
