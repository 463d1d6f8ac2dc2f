def test_without_scikit_learn_the_import_says_so(run_python):
    program = """
import sys
sys.modules["sklearn"] = None
try:
    import anharmonic.estimators
except ImportError as error:
    print(error)
"""
    done = run_python(program)
    assert "needs the package scikit-learn" in done.stdout
    assert 'pip install "anharmonic[sklearn]"' in done.stdout
    assert len(done.stdout.splitlines()) == 1


def test_scikit_learn_is_enough_for_resonators(run_python):
    program = """
import sys
for name in ("jinja2", "matplotlib", "pooch", "rich", "tqdm", "tyro"):
    sys.modules[name] = None
import numpy as np
from anharmonic.estimators import ResonatorClassifier
X = np.random.default_rng(0).normal(size=(20, 2, 30))
print(ResonatorClassifier(20, random_state=0).fit(X, np.arange(20) % 2).predict(X).shape)
"""
    done = run_python(program)
    assert done.stdout == "(20,)\n", done.stderr
