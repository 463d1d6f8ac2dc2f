import builtins
from dataclasses import dataclass, field

import pytest

from anharmonic.train import serialization
from anharmonic.train.serialization import structure_json


@dataclass
class Inner:
    x: float
    names: list[str] = field(default_factory=list)


@dataclass
class Outer:
    inner: Inner
    count: int | None = None


def test_nested():
    text = '{"inner": {"x": 1, "names": ["a"]}}'
    assert structure_json(Outer, text, "it") == Outer(Inner(1, ["a"]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"inner": {"x": "1"}}', "inner.x must be float, not '1'"),
        ('{"inner": {"x": 1, "names": [2]}}', "inner.names.*must be str, not 2"),
        ('{"inner": {"x": 1, "nams": []}}', "unknown key 'inner.nams' .did you mean 'names'"),
        ('{"inner": {"x": 1}, "zzz": 1}', "unknown key 'zzz' .known: inner, count."),
        ('{"inner": {}}', "no key 'inner.x'"),
        ("3", "it must be a JSON object; got int; put it in braces"),
    ],
)
def test_errors_name_the_key(text, message):
    with pytest.raises(ValueError, match=message):
        structure_json(Outer, text, "it")


def test_missing_cattrs(monkeypatch):
    original = builtins.__import__

    def without(name, *rest):
        if name.startswith("cattrs"):
            raise ImportError(name)
        return original(name, *rest)

    serialization._converter.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r'package cattrs.*pip install "anharmonic\[train\]"'):
        structure_json(Inner, '{"x": 1}', "it")
