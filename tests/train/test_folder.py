import fcntl

import pytest

from anharmonic.train.folder import claim, locked, remove_temporary, run_folder


def test_claim_twice(tmp_path, tiny):
    claim(tmp_path, tiny())
    claim(tmp_path, tiny())
    assert (tmp_path / "run.json").read_text() == tiny().to_json(indent=2) + "\n"


def test_claim_of_the_same_run_written_otherwise(tmp_path, tiny):
    claim(tmp_path, tiny(task_options={}))
    claim(tmp_path, tiny(task_options={"length": 500}))


def test_folder_of_another_run(tmp_path, tiny):
    claim(tmp_path, tiny())
    with pytest.raises(
        ValueError, match=r'run.json must hold this run, .*"seed":9.*"seed":3.*move'
    ):
        claim(tmp_path, tiny(seed=9))


def test_damaged_run_json(tmp_path, tiny):
    claim(tmp_path, tiny())
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(ValueError, match=r"must hold this run.*a run's JSON must be JSON"):
        claim(tmp_path, tiny())


def test_name(environment, tiny):
    assert run_folder(tiny(), environment).name == f"adding-LSTM-{tiny().hash}"


def test_one_process_at_a_time(tmp_path):
    tmp_path /= "new"
    with locked(tmp_path), pytest.raises(RuntimeError, match=r"only one process.*wait for it"):
        with locked(tmp_path):
            pass
    with locked(tmp_path):
        pass


def test_file_system_without_locks(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with locked(tmp_path):
        pass


def test_temporary_files_are_removed(tmp_path):
    (tmp_path / "resume.ckpt").write_text("whole")
    (tmp_path / "resume.ckpt.1234.tmp").write_text("half")
    remove_temporary(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["resume.ckpt"]
