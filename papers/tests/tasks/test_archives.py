import pytest

from anharmonic.data import Source, load_arrays
from anharmonic_papers.tasks import archives
from anharmonic_papers.tasks.graphs.stored import DIGESTS, prepared

SOURCES = [value for value in vars(archives).values() if isinstance(value, Source)]
SOURCES += map(prepared, DIGESTS)


@pytest.mark.parametrize("source", [one for one in SOURCES if one.digest], ids=lambda s: s.name)
def test_real_data_have_their_digest(source, real_data):
    assert load_arrays(source, real_data(f"{source.name}.npz", source.folder))


@pytest.mark.parametrize("source", SOURCES, ids=lambda s: s.name)
def test_every_download_is_encrypted_and_checked(source):
    assert all(file.url.startswith("https://") for file in source.files)
    checked = bool(source.files) and all(file.checksum for file in source.files)
    assert source.digest or (checked and source.form)
