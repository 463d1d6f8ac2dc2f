import threading

import pytest
import torch

import anharmonic as ah
from anharmonic.ops.chosen import Chosen


def test_holds_in_its_block_and_thread_only():
    word = Chosen("word", "outside")
    seen = []
    with word.within("first"):
        with word.within("second"):
            assert word.word() == "second"
            other = threading.Thread(target=lambda: seen.append(word.word()))
            other.start()
            other.join()
        assert word.word() == "first" and seen == ["outside"]
    with pytest.raises(RuntimeError), word.within("third"):
        raise RuntimeError
    assert word.word() == "outside"


def test_compiled_code_follows():
    word = Chosen("word", "a")
    compiled = torch.compile(
        lambda x: x + 1 if word.word() == "a" else x * 10, backend="aot_eager", fullgraph=True
    )
    x = torch.full((1,), 5.0)
    found = [compiled(x).item()]
    with word.within("b"):
        found.append(compiled(x).item())
    found.append(compiled(x).item())
    assert found == [6.0, 50.0, 6.0]


@pytest.mark.parametrize("name", ["UnICORNN", "CoRNN", "LEM"])
def test_layers_compile_as_one_graph(name):
    torch.manual_seed(0)
    layer, x = getattr(ah, name)(2, 3), torch.randn(5, 2, 2)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    expected, _ = layer(x)
    output, _ = compiled(x)
    assert torch.equal(output, expected)
    with ah.use_backend("reference"):
        again, _ = compiled(x)
    torch.testing.assert_close(again, expected)
