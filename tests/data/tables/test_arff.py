"""`.arff` files of one channel and of several."""

import numpy as np
import pytest

from anharmonic.data.readers import read_parts

pytest.importorskip("pyarrow")

ONE = """% a comment
@RELATION Gun
@attribute att0 numeric
@ATTRIBUTE att1 real
@attribute target {1,2}

@data
1.5,?,2
-2e0,3,1
"""
MANY = r"""@relation 'Basic Motions'
@attribute relationalAtt relational
@attribute att0 numeric
@attribute att1 numeric
@attribute att2 numeric
@end relationalAtt
@attribute activity {Standing,'Playing badminton'}
@data
'1,2,3\n4,5,6',Standing
"7,8,?\n9,10,?",'Playing badminton'
"""


@pytest.fixture
def read(tmp_path):
    def _read(text):
        (tmp_path / "a.arff").write_text(text)
        return read_parts(tmp_path / "a.arff")["all"]

    return _read


def test_one_channel(read):
    part = read(ONE)
    np.testing.assert_array_equal(part.x[:, 0], np.array([1.5, -2, 3], np.float32))
    assert part.lengths.tolist() == [1, 2] and part.y.tolist() == [2, 1]


def test_several_channels_of_unequal_length(read):
    part = read(MANY)
    assert part.x.tolist() == [[1, 4], [2, 5], [3, 6], [7, 9], [8, 10]]
    assert part.lengths.tolist() == [3, 2]
    assert part.y.tolist() == ["Standing", "Playing badminton"]


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("", ["@data"]),
        (ONE.replace("@data", ""), ["line 8", "@data"]),
        (ONE.replace("real", "date"), ["line 4", "'date'"]),
        (ONE.replace("-2e0", "two"), ["line 9", "two"]),
        (ONE.replace(",1\n", ",3\n"), ["line 9", "'3'", "1, 2"]),
        (ONE.replace(",1\n", "\n"), ["line 9", "got 2", "3, one for every attribute"]),
        (ONE.replace("-2e0,3,1", "{0 -2, 2 1}"), ["line 9", "sparse"]),
        (MANY.replace("4,5,6", "4,5"), ["line 9", "[3, 2]"]),
        (MANY.replace("@relation", "@relazione"), ["line 1", "@relation"]),
        (ONE.partition("1.5")[0], ["rows", "0"]),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(read, text, texts):
    with pytest.raises(ValueError) as error:
        read(text)
    for part in texts:
        assert part in str(error.value)
