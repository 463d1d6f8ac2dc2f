"""Ray around `fit`: Tune chooses settings, Train starts the processes of one training.

pip install "ray[tune,train]"
python examples/ray_around_fit.py

Ray is no dependency: both parts are a function that calls `fit`, as any scheduler's would. The
folder must be shared where workers are on several machines. Train takes a CPU for each of its two
processes; where they start slowly, RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S gives them more seconds.
"""

import argparse
import os
import tempfile
from pathlib import Path

import ray
from ray import train, tune
from ray.train.torch import TorchTrainer

from anharmonic.train import Run, RunEnvironment, fit, read_results

EPOCHS = 5


def one_trial(config):
    """A trial of Tune: it is told every epoch's validation value, and may stop the training."""
    run = Run("digits", "LEM", model_options={"hidden_size": 16}, epochs=EPOCHS, lr=config["lr"])
    environment = RunEnvironment(out=config["folder"], threads=1, progress=False)
    fit(
        run,
        environment,
        on_epoch_end=lambda epoch, values: tune.report({"valid": values["valid"], "epoch": epoch}),
    )


def one_process(config):
    """A process of one training: Ray's Train says which one."""
    context = train.get_context()
    os.environ |= {
        "RANK": str(context.get_world_rank()),  # what torchrun would have set
        "LOCAL_RANK": str(context.get_local_rank()),
        "WORLD_SIZE": str(context.get_world_size()),
    }
    run = Run("digits", "LEM", model_options={"hidden_size": 16}, epochs=2)
    environment = RunEnvironment(
        out=config["folder"], devices=context.get_local_world_size(), threads=1, progress=False
    )
    fit(run, environment)  # the first process adds the line of results


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=["tune", "train"])
    parser.add_argument("--out", type=Path, default=Path(tempfile.mkdtemp()))
    arguments = parser.parse_args()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    if arguments.only != "train":
        folder = str(arguments.out / "trials")
        tuner = tune.Tuner(
            one_trial,
            param_space={"lr": tune.loguniform(1e-3, 1e-1), "folder": folder},
            tune_config=tune.TuneConfig(
                num_samples=4,
                metric="valid",
                mode="max",
                scheduler=tune.schedulers.ASHAScheduler(max_t=EPOCHS, grace_period=2),
            ),
            run_config=tune.RunConfig(storage_path=str(arguments.out.resolve()), verbose=0),
        )
        best = tuner.fit().get_best_result()
        print(f"Tune: validation accuracy {best.metrics['valid']:.1f}, lr {best.config['lr']:.3g}")
    if arguments.only != "tune":
        trainer = TorchTrainer(
            one_process,
            train_loop_config={"folder": str(arguments.out / "together")},
            scaling_config=train.ScalingConfig(num_workers=2),
            run_config=train.RunConfig(storage_path=str(arguments.out.resolve())),
        )
        trainer.fit()
        (found,) = read_results(arguments.out / "together" / "results.jsonl")
        print(f"Train: {found.devices} processes, test accuracy {found.test:.1f}")


if __name__ == "__main__":
    main()
