"""
When is a signal known?
=======================

A classifier that is asked after every sample: resonators keep running features of a stream, and
their probabilities may be read at any time.
"""

# %%
# Two kinds of signals, 25 and 30 samples a period, in noise. The model is fitted on pieces of
# several lengths,
# because it will be asked early.
import matplotlib.pyplot as plt
import numpy as np

from anharmonic.estimators import ResonatorClassifier

rng = np.random.default_rng(0)
steps = np.arange(300)


def signals(count, period):
    phase = rng.uniform(0, 2 * np.pi, (count, 1))
    return np.sin(2 * np.pi * steps / period + phase) + rng.normal(size=(count, steps.size))


lengths = (40, 80, 150, 300)
pieces, labels = [], []
for name, period in (("25 samples", 25), ("30 samples", 30)):
    for row in signals(60, period):
        pieces += [row[:length] for length in lengths]
        labels += [name] * len(lengths)
model = ResonatorClassifier(num_oscillators=300, random_state=0)
model.fit(pieces, np.array(labels))

# %%
# Fifty new signals of 30 samples a period, all at once, one sample of each at a time.
new = signals(50, 30)
stream = model.stream(num_streams=len(new))
right = []
for t in steps:
    stream.update(new[:, [t]])
    right.append(stream.predict_proba()[:, 1] if t >= 10 else np.full(len(new), np.nan))
right = np.array(right)

figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
axes.plot(steps, right[:, :12], color="0.75", lw=0.8)
axes.plot(steps, np.median(right, axis=1), color="#0072B2", lw=2)
axes.axhline(0.5, color="black", lw=0.8, ls=":")
axes.annotate(
    "median of 50 streams",
    (steps[-1], np.median(right[-1])),
    (-150, -40),
    textcoords="offset points",
    color="#0072B2",
)
axes.set(xlabel="samples seen", ylabel="probability of the true class", ylim=(0, 1))
plt.show()

# %%
# How many are right after 40, 100, 200 and 300 samples:
print({t: f"{(right[t - 1] > 0.5).mean():.0%}" for t in (40, 100, 200, 300)})
