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
