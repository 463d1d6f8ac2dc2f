import subprocess
import sys


def test_without_scikit_learn_the_import_says_so():
    program = """
import sys
sys.modules["sklearn"] = None
try:
    import anharmonic.estimators
except ImportError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True
    )
    assert "needs the package scikit-learn" in done.stdout
    assert 'pip install "anharmonic[sklearn]"' in done.stdout
    assert len(done.stdout.splitlines()) == 1
