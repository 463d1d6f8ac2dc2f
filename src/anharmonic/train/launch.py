"""Several processes that train one run: who started them, and what a signal does to them.

Imported by ``fit`` only, because it needs Lightning.
"""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import Any

from lightning.fabric.plugins.environments.cluster_environment import ClusterEnvironment
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from lightning.pytorch import Trainer
from lightning.pytorch.strategies import DDPStrategy

from anharmonic import _checks
from anharmonic.train.run import RunEnvironment

TERMINATED = 128 + signal.SIGTERM
"""The exit code after SIGTERM."""


def launcher() -> ClusterEnvironment | None:
    """What started this process as one of several, as Lightning detects it; None for neither.

    torchrun comes before SLURM: ``srun torchrun`` starts one torchrun per node.

    Raises:
        RuntimeError: If SLURM's variables do not say how many tasks a node has.
    """
    if TorchElasticEnvironment.detect():
        return TorchElasticEnvironment()
    # When the queue takes the job away (SIGUSR1), Lightning puts it back into the queue.
    return SLURMEnvironment(auto_requeue=True) if SLURMEnvironment.detect() else None


def check_processes(environment: RunEnvironment) -> None:
    """Refuses another number of processes than were started.

    Raises:
        ValueError: If `devices` times `num_nodes` is another number, or nothing started processes
            on several machines.
    """
    found = launcher()
    came = f"devices={environment.devices}, num_nodes={environment.num_nodes}"
    if found is None:
        advice = "start the command by torchrun or srun on every machine, see the documentation"
        single = environment.num_nodes == 1
        _checks.require(single, "num_nodes", came, "1 without torchrun or SLURM", advice)
        return
    by = "torchrun" if isinstance(found, TorchElasticEnvironment) else "SLURM"
    _checks.require(
        environment.world_size == found.world_size(),
        "devices times num_nodes",
        came,
        f"{found.world_size()}, the number of processes that {by} started",
        "pass the processes per machine as --devices, the machines as --num-nodes",
    )


def strategy_of(environment: RunEnvironment, device: str) -> Any:
    """Lightning's strategy.

    Args:
        environment: Has the number of processes.
        device: "cpu" or "cuda".
    """
    if environment.world_size == 1 and environment.strategy == "auto":
        return "auto"
    return DDPStrategy(process_group_backend="nccl" if device == "cuda" else "gloo")


class EpochTrainer(Trainer):
    """A trainer whose states are those of the ends of epochs, from which runs resume exactly.

    Before Lightning puts a job back into SLURM's queue it would save in the middle of a step, and
    wait in its signal handler for the other processes, which may wait for this one elsewhere. The
    last epoch's state is on the disk already.
    """

    def save_checkpoint(self, filepath: str | Path, *rest: Any, **more: Any) -> None:
        """Saves, but for what Lightning saves of its own accord."""
        if not Path(filepath).name.startswith("hpc_ckpt"):
            super().save_checkpoint(filepath, *rest, **more)


def leave_on_sigterm(trainer: Trainer) -> None:
    """Lets SIGTERM end each of several processes at once.

    Lightning's own handler tells the other processes, which hangs when they were told too.
    Lightning puts back what was there before when training ends. In another thread than the main
    one, as in a process of Ray, signals are the caller's.
    """
    if trainer.world_size > 1 and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
