import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax
from scipy.stats import f_oneway
from sklearn.linear_model import Ridge, RidgeClassifierCV
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from anharmonic.estimators import ResonatorClassifier, ResonatorRegressor, ResonatorTransformer
from anharmonic.nn.resonators.model import Resonators, fit_readout, sharpness

FEW = {"num_oscillators": 40, "random_state": 0}


@pytest.fixture
def waves():
    """Waves of three speeds in two channels [n, C, T], with noise."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 90)
    phase = rng.uniform(0, 6, (90, 2, 1))
    x = np.sin(np.array([0.2, 0.5, 1.2])[kind][:, None, None] * np.arange(40) + phase)
    return x + 0.3 * rng.normal(size=x.shape), np.array(["slow", "middle", "fast"])[kind]


def test_a_pipeline_of_the_transformer_is_the_same_model(waves):
    x, y = waves[0][:49], waves[1][:49]  # from 50 on, features are weighted
    fitted = ResonatorClassifier(**FEW).fit(x, y)
    line = make_pipeline(
        ResonatorTransformer(**FEW), StandardScaler(), RidgeClassifierCV(np.logspace(-4, 4, 20))
    )
    np.testing.assert_allclose(
        line.fit(x, y).decision_function(x), fitted.decision_function(x), rtol=1e-4, atol=1e-4
    )
    names = line[0].get_feature_names_out()
    assert len(names) == line[0].transform(x).shape[1] and names[0] == "resonatortransformer0"


def test_features_count_by_their_share_of_variance_between_classes(waves):
    x, y = waves
    found = ResonatorTransformer(**FEW).fit_transform(x[:60]).astype(float)
    codes = np.unique(y, return_inverse=True)[1][:60]
    f = f_oneway(*(found[codes == c] for c in range(3))).statistic
    varies = found.std(0) > 1e-6
    share = np.where(varies, 2 * f / (2 * f + 57), 1e-9)  # of F with 2 and 57 degrees of freedom
    for copies, weighted in ((None, True), (np.full(60, 0.8), False), (np.full(60, 2.0), True)):
        model = ResonatorClassifier(**FEW).fit(x[:60], codes, sample_weight=copies)
        ratio = np.sqrt(model.scaler_.var_)[varies] / model.scaler_.scale_[varies]
        expected = share / np.sqrt((share**2).mean()) if weighted else np.ones(len(share))
        np.testing.assert_allclose(ratio, expected[varies], rtol=1e-3, atol=1e-6)


def test_features_of_a_frame_with_a_row_per_step_have_a_row_per_sequence(waves):
    x, _ = waves
    steps = x[:5].transpose(0, 2, 1).reshape(-1, 2)
    frame = pd.DataFrame(steps, columns=["a", "b"]).assign(id=np.repeat([*"uvwxy"], 40))
    model = ResonatorTransformer(**FEW).set_output(transform="pandas")
    found = model.fit_transform(frame)
    np.testing.assert_array_equal(found, model.transform(frame))
    np.testing.assert_array_equal(found, model.transform(x[:5]))
    assert found.columns[0] == "resonatortransformer0" and len(found) == 5


def test_left_out_predictions_are_those_of_models_without_the_sequence(waves):
    x, y = waves
    found, targets = ResonatorTransformer(**FEW).fit_transform(x), (y == "fast").astype(float)
    made = fit_readout(found, targets[:, None])
    scaled = made.scaler.transform(found.astype(np.float64))
    for i in (0, 17, 60):
        rest = np.delete(np.arange(90), i)
        ridge = Ridge(made.ridge.alpha_).fit(scaled[rest], targets[rest])
        np.testing.assert_allclose(ridge.predict(scaled[i : i + 1]), made.left_out[i], rtol=1e-5)


def test_probabilities_are_calibrated_on_what_was_left_out(waves):
    x, _ = waves
    rng = np.random.default_rng(0)
    noise, y = rng.normal(size=x.shape), rng.integers(0, 2, 90)
    model = ResonatorClassifier(**FEW).fit(noise[:60], y[:60])
    # Nothing can be learnt, and the probabilities say so.
    assert log_loss(y[60:], model.predict_proba(noise[60:])) < 0.8
    assert np.abs(model.predict_proba(noise[60:]) - 0.5).max() < 0.35


def test_sharpness_counts_sequences_by_their_weights():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 200)
    decisions = rng.normal(size=(400, 2))
    decisions[:200, 0] += 4.0  # the first class is told apart, the second one hardly
    decisions[200:, 1] += 0.2
    weights = np.where(codes == 0, 1.9, 0.1)
    best = sharpness(decisions, codes, weights)
    assert best > 1.2 * sharpness(decisions, codes) > 1.2 * sharpness(decisions, codes, 2 - weights)
    sure = np.abs(np.eye(2)[codes] - 1 / 402)  # targets a little less than certain
    found = [(sure * log_softmax(k * best * decisions, 1)).sum(1) @ weights for k in (0.8, 1, 1.25)]
    assert found[1] == max(found)


def test_a_model_is_as_sharp_as_its_weights_say():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 30, 1)), np.repeat([0, 1, 2], [40, 10, 10])
    x[y == 1] *= 1.4
    weights = np.array([0.5, 2.0, 2.0])[y]
    model = Resonators(1, 3, num_oscillators=20).fit(x, y, seed=0, weights=weights)
    expected = sharpness(model.fitted.left_out, y, weights)
    assert float(model.sharpness) == expected != sharpness(model.fitted.left_out, y)


@pytest.mark.parametrize("scaling", ["train", "running"])
def test_streams_say_what_the_whole_says(waves, scaling):
    x, y = waves
    model = ResonatorClassifier(**FEW, scaling=scaling).fit(x, y)
    stream = model.stream(num_streams=5)
    for t in range(40):
        stream.update(x[:5, :, t])
        if t == 20:
            assert (stream.predict_proba() == model.predict_proba(x[:5, :, :21])).all()
    assert (stream.predict() == model.predict(x[:5])).all()
    stream.reset()
    with pytest.raises(ValueError, match="update"):
        stream.predict()
    with pytest.raises(ValueError, match="scaling"):
        ResonatorClassifier(**FEW, scaling="series").fit(x, y).stream()


def test_a_gap_is_named_with_its_place_and_what_to_do():
    X, y = [np.zeros((2, 20)), np.ones((2, 30))], ["a", "b"]
    model = ResonatorClassifier(5).fit(X, y)
    X[1][0, 7] = np.nan
    for call in (lambda: model.predict(X), lambda: ResonatorClassifier(5).fit(X, y)):
        with pytest.raises(ValueError, match=r"X\[1\] at step 7 .*NaN.*missing='forward'"):
            call()
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.full((1, 2, 20), np.nan))
    # Masked numbers are gaps, too.
    with pytest.raises(ValueError, match="x_t must be finite numbers; got 'NaN or infinity'"):
        model.stream().update(np.ma.masked_equal([1.0, 2.0], 2.0))
    with pytest.raises(ValueError, match="y contains NaN"):
        ResonatorRegressor(5).fit(np.zeros((3, 9)), np.ma.masked_equal(np.arange(3), 2))


@pytest.mark.parametrize("features", [12, 200])  # fewer and more than sequences
@pytest.mark.parametrize("classes", [False, True])
def test_whole_weights_are_copies(features, classes):
    """The linear model is that of repeated sequences: coefficients, penalty, what is left out."""
    rng = np.random.default_rng(0)
    found, copies = rng.normal(size=(40, features)).astype(np.float32), rng.integers(1, 4, 40)
    y = found[:, :2].astype(float) + rng.normal(size=(40, 2))
    weights = rng.uniform(0.5, 2, 40) if classes else None
    again = None if weights is None else np.repeat(weights, copies)
    codes = (y[:, 0] > 0).astype(int)
    both = (codes, np.repeat(codes, copies)) if classes else (None, None)
    mine = fit_readout(found, y, None, weights, copies.astype(float), both[0])
    other = fit_readout(
        np.repeat(found, copies, 0), np.repeat(y, copies, 0), None, again, None, both[1]
    )
    assert mine.ridge.alpha_ == other.ridge.alpha_
    np.testing.assert_allclose(mine.scaler.mean_, other.scaler.mean_, rtol=1e-10)
    np.testing.assert_allclose(mine.scaler.scale_, other.scaler.scale_, rtol=1e-10)
    np.testing.assert_allclose(mine.ridge.coef_, other.ridge.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(mine.ridge.intercept_, other.ridge.intercept_, rtol=1e-9)
    left_out = np.repeat(mine.left_out, copies, 0)
    np.testing.assert_allclose(left_out, other.left_out, rtol=1e-6, atol=1e-8)
    both = sharpness(mine.left_out, codes, weights, copies.astype(float))
    assert both == pytest.approx(sharpness(left_out, np.repeat(codes, copies), again), rel=1e-4)


@pytest.mark.filterwarnings("error")
def test_weights_leave_features_that_are_constant_as_they_are():
    constant = 0.1 * np.arange(1, 201) * np.ones((200, 1))  # of some the variance rounds below 0
    targets = np.arange(200.0)[:, None]
    scaler, *_ = fit_readout(constant, targets, copies=np.where(np.arange(200) % 3, 1.0, 0.2))
    assert (scaler.scale_ == 1).all()
