"""Each training as a job of SLURM: submitit around `fit`.

pip install submitit
python examples/jobs_on_slurm.py --cluster slurm --options timeout_min=600 slurm_partition=gpu

Start it in a folder that all machines share. Each job adds its own line to the results file, and a
training that has a line is not repeated: the same command, started again, goes on. Where SLURM
takes a job away, submitit puts it back into the queue, and `fit` goes on after the last saved
epoch. ``--cluster local`` runs the jobs on this machine. The package does not need submitit, which
pickles what it sends: let nobody else write to the folder.
"""

import argparse
from pathlib import Path

import submitit

from anharmonic.train import Row, Run, RunEnvironment, fit, read_results, without_results


class Job:
    """Trains a run. submitit calls `checkpoint` where SLURM takes the job away."""

    def __call__(self, run, environment):
        """Trains the run and returns its test value."""
        return fit(run, environment).test

    def checkpoint(self, *arguments):
        """Return what submitit puts into the queue again."""
        return submitit.helpers.DelayedSubmission(self, *arguments)


def submit(rows, environment, cluster, **options):
    """Submits a job for each row without a result and yields row and value, or row and error.

    Args:
        rows: The runs and their names.
        environment: Where they are trained; `devices` is the number of processes of each job.
        cluster: "slurm", or "local" for this machine.
        options: Of submitit, such as timeout_min, slurm_partition, gpus_per_node and mem_gb.
    """
    executor = submitit.AutoExecutor(environment.out / "jobs", cluster=cluster)
    executor.update_parameters(name="anharmonic", timeout_min=24 * 60)
    if cluster == "slurm":  # on this machine, the training starts its processes itself
        executor.update_parameters(tasks_per_node=environment.devices, nodes=environment.num_nodes)
    executor.update_parameters(**options)
    missing = without_results(rows, read_results(environment.results_path))
    jobs = [(row, executor.submit(Job(), row.run, environment)) for row in missing]
    for row, job in jobs:
        try:
            yield row, job.results()[0]  # the same of each process
        except Exception as error:
            yield row, f"failed ({type(error).__name__}), see {job.paths.stderr}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cluster", choices=["slurm", "local"], default="local")
    parser.add_argument("--options", nargs="*", default=[], metavar="NAME=VALUE")
    parser.add_argument("--out", type=Path, default=Path("runs"))
    arguments = parser.parse_args()
    pairs = [option.partition("=")[::2] for option in arguments.options]
    options = {name: int(value) if value.isdigit() else value for name, value in pairs}
    small = {"hidden_size": 16}
    rows = [
        Row(f"{model}, seed {seed}", Run("digits", model, {}, small, epochs=2, seed=seed))
        for model in ("LEM", "LSTM")
        for seed in (0, 1)
    ]
    environment = RunEnvironment(out=arguments.out, threads=1, progress=False)
    for row, value in submit(rows, environment, arguments.cluster, **options):
        print(f"{row.name}: {value}", flush=True)
    print(f"{len(read_results(environment.results_path))} results; now: anharmonic compare digits")


if __name__ == "__main__":
    main()
