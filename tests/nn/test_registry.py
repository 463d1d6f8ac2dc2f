import anharmonic as ah
from anharmonic.nn.registry import canonical_name, list_models, model_class


def test_names():
    oscillators = ["NeuralOscillator", "MultiLayerNeuralOscillator"]
    ours = ["CoRNN", "UnICORNN", "LEM", *oscillators, "SkewRNN", "LinOSSNetwork"]
    assert ah.list_models()[:11] == [*ours, "RNN", "LSTM", "GRU", "ChronoLSTM"]
    for name in list_models():
        assert model_class(name).__name__ == name
        assert canonical_name(name.upper()) == name == canonical_name(name.lower())
