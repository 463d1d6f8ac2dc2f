"""What is kept of a long curve."""

from anharmonic.train.fit import _thinned


def test_a_long_curve_is_thinned_but_keeps_the_best_and_the_last():
    epochs = list(range(1, 1502))
    curve = {
        "epoch": epochs,
        "train_loss": [1 / e for e in epochs],
        "valid": [float(e) for e in epochs],
    }
    thinned = _thinned(curve, best_epoch=778)
    assert len(thinned["epoch"]) <= 103
    assert thinned["epoch"][0] == 1 and thinned["epoch"][-1] == 1501 and 778 in thinned["epoch"]
    assert thinned["valid"] == [float(epoch) for epoch in thinned["epoch"]]
    short = {name: values[:100] for name, values in curve.items()}
    assert _thinned(short, 3)["epoch"] == epochs[:100]
