import pytest

import anharmonic as ah
from anharmonic.nn.registry import canonical_name, list_models, model_class


def test_names():
    oscillators = ["NeuralOscillator", "MultiLayerNeuralOscillator"]
    ours = ["CoRNN", "UnICORNN", "LEM", *oscillators, "SkewRNN", "LinOSSNetwork"]
    assert ah.list_models()[:11] == [*ours, "RNN", "LSTM", "GRU", "ChronoLSTM"]
    for name in list_models():
        assert model_class(name).__name__ == name
        assert canonical_name(name.upper()) == name == canonical_name(name.lower())


def test_unknown_name_lists_the_nearest():
    with pytest.raises(ValueError, match=r"one of 'CoRNN', .*got 'CoRN'; did you mean 'CoRNN'"):
        model_class("CoRN")
    with pytest.raises(ValueError, match="choose one of these names"):
        model_class("transformer")
    with pytest.raises(ValueError, match="got 3"):
        canonical_name(3)
