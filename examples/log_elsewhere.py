"""Log a training to Weights & Biases or MLflow: a function that `fit` calls after every epoch.

pip install wandb mlflow
python examples/log_elsewhere.py wandb

A run that was interrupted continues its log: `fit` first reports the epochs before, and what the
log already has is left out. Any other logger needs such a function, too.
"""

import json
import sys

from anharmonic.train import Run, RunEnvironment, fit


def to_wandb(run):
    """The function for W&B, and one that closes the log."""
    import wandb

    settings = json.loads(run.to_json())
    log = wandb.init(project="anharmonic", id=run.hash, resume="allow", config=settings)
    logged = log.step  # 0, or one more than the last epoch of an earlier sitting

    def on_epoch_end(epoch, values):
        if epoch >= logged:
            log.log(values, step=epoch)

    return on_epoch_end, log.finish


def to_mlflow(run):
    """The function for MLflow, and one that closes the log."""
    import mlflow

    mlflow.set_experiment("anharmonic")
    client = mlflow.MlflowClient()
    known = mlflow.search_runs(filter_string=f"tags.run = '{run.hash}'", output_format="list")
    name = known[0].info.run_id if known else None
    log = mlflow.start_run(name, run_name=run.folder_name, tags={"run": run.hash})
    if not known:
        mlflow.log_params(json.loads(run.to_json()))
    logged = len(client.get_metric_history(log.info.run_id, "train_loss"))

    def on_epoch_end(epoch, values):
        if epoch > logged:
            mlflow.log_metrics(values, step=epoch)

    return on_epoch_end, mlflow.end_run


def to_terminal(run):
    """Prints instead, without any package."""
    return lambda epoch, values: print(run.model, epoch, values), lambda: None


LOGS = {"wandb": to_wandb, "mlflow": to_mlflow, "terminal": to_terminal}


def main(name="terminal"):
    run = Run("digits", "LEM", model_options={"hidden_size": 8}, epochs=2)
    on_epoch_end, close = LOGS[name](run)
    try:
        fit(run, RunEnvironment(progress=False), None, on_epoch_end)
    finally:
        close()


if __name__ == "__main__":
    main(*sys.argv[1:])
