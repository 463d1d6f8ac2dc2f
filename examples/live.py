"""Which exercise is it? Watches are followed live by resonators, many at a time.

    python examples/live.py [FOLDER]

FOLDER holds sequence/watch_imu.npz: 140 recordings of seven shoulder exercises, six channels at
50 Hz. Without it (and without ANHARMONIC_DATA) recordings of the same form are made up.
"""

import os
import sys
import time
from pathlib import Path

import numpy as np

from anharmonic.estimators import ResonatorClassifier

TEST_SUBJECTS = (2, 5, 8)
SHORTEST, LONGEST = 100, 500  # steps of a window: 2 to 10 s


def recordings(folder=None):
    """Sequences [T, 6], the exercise of each, and who did it."""
    folder = folder or os.environ.get("ANHARMONIC_DATA")
    path = Path(folder or ".") / "sequence" / "watch_imu.npz"
    if not path.is_file():
        return made_up(np.random.default_rng(0))
    data = dict(np.load(path))
    names = data["label_names"][data["label"]]
    return np.split(data["values"], data["offsets"][1:-1]), names, data["subject"]


def made_up(rng, exercises=7, subjects=10, steps=1000):
    """Periodic movements: an exercise is a form, a subject has a tempo and a strength."""
    forms = rng.normal(size=(exercises, 3, 6, 2))
    tempo, strength = rng.uniform(0.8, 1.25, subjects), rng.uniform(0.7, 1.4, subjects)
    sequences, names, subject = [], [], []
    for who in range(subjects):
        for what in range(exercises):
            phase = np.arange(steps) * tempo[who] * 2 * np.pi / 125 + rng.uniform(0, 6)
            waves = np.stack([[np.cos(k * phase), np.sin(k * phase)] for k in (1, 2, 3)])
            clean = strength[who] * np.einsum("kcp,kpt->tc", forms[what], waves)
            sequences.append((clean + 2 * rng.normal(size=clean.shape)).astype(np.float32))
            names.append(f"exercise {what}")
            subject.append(who + 1)
    return sequences, np.array(names), np.array(subject)


def windows(sequences, rng, each=8):
    """Windows of random lengths [6, t], so that short looks are learned too; whose each is."""
    found, owners = [], []
    for number, one in enumerate(sequences):
        for _ in range(each):
            longest = np.log(min(LONGEST, len(one)))
            length = int(np.exp(rng.uniform(np.log(SHORTEST), longest)))
            start = rng.integers(0, max(1, len(one) - length))
            found.append(one[start : start + length].T)
            owners.append(number)
    return found, owners


def main(folder=None):
    """Fits, streams and prints; returns shares of right answers by seconds, and the trivial one."""
    sequences, names, subject = recordings(folder)
    is_test = np.isin(subject, TEST_SUBJECTS)
    train = [one for one, out in zip(sequences, is_test, strict=True) if not out]
    test = [one for one, out in zip(sequences, is_test, strict=True) if out]

    X, owners = windows(train, np.random.default_rng(0))
    y = names[~is_test][owners]
    began = time.perf_counter()
    model = ResonatorClassifier(num_oscillators=300, random_state=0).fit(X, y)
    print(f"fitted to {len(X)} windows in {time.perf_counter() - began:.1f} s")

    # All unknown people at once; every ten seconds the streams begin anew.
    stream = model.stream(num_streams=len(test))
    steps = min(map(len, test)) // LONGEST * LONGEST
    samples = np.stack([one[:steps] for one in test], axis=1)  # [steps, streams, 6]
    looks = {100: [], 250: [], 500: []}
    spent = 0.0
    for t, x_t in enumerate(samples):
        if t % LONGEST == 0:
            stream.reset()
        began = time.perf_counter()
        stream.update(x_t)
        spent += time.perf_counter() - began
        if t % LONGEST + 1 in looks:
            probabilities = stream.predict_proba()
            found = model.classes_[probabilities.argmax(axis=1)]
            looks[t % LONGEST + 1].append(found == names[is_test])
            if t < LONGEST:
                said = f"{found[0]} ({probabilities[0].max():.0%})"
                print(f"after {t / 50:4.1f} s: {said}, truly {names[is_test][0]}")
    right = {steps / 50: float(np.mean(hits)) for steps, hits in looks.items()}
    _, counts = np.unique(names[is_test], return_counts=True)
    trivial = counts.max() / counts.sum()
    for seconds, share in right.items():
        print(f"{share:.0%} of {len(test)} streams are right after {seconds:.0f} s")
    print(f"always the same answer: {trivial:.0%}")
    print(f"{1e6 * spent / steps / len(test):.1f} microseconds a sample and stream")
    return right, trivial


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
