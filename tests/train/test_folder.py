import fcntl

import pytest

from anharmonic.train.folder import claim, locked, run_folder


def test_a_folder_is_claimed_by_one_run(tmp_path, tiny, environment):
    assert run_folder(tiny(), environment).name == f"adding-LSTM-{tiny().hash}"
    for options in ({}, {"length": 500}, {}):  # the same run written otherwise
        claim(tmp_path, tiny(task_options=options))
    assert (tmp_path / "run.json").read_text() == tiny(task_options={}).to_json(indent=2) + "\n"
    with pytest.raises(ValueError, match=r'must hold this run, .*"seed":9.*"seed":3.*move'):
        claim(tmp_path, tiny(seed=9))
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(ValueError, match=r"must hold this run.*a run's JSON must be JSON"):
        claim(tmp_path, tiny())


def test_one_process_at_a_time_if_the_file_system_has_locks(tmp_path, monkeypatch):
    tmp_path /= "new"
    with locked(tmp_path), pytest.raises(RuntimeError, match=r"only one process.*wait for it"):
        with locked(tmp_path):
            pass
    with locked(tmp_path):
        pass

    def refuse(*arguments):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with locked(tmp_path), locked(tmp_path):
        pass
