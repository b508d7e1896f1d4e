"""What a cluster is asked for: a file in conf/cluster/, changed by `cluster.KEY=VALUE`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omegaconf import OmegaConf
from pydantic import NonNegativeInt, PositiveInt

from elmo_bench.configuration.keys import Keys, Text, valid
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import yaml_text
from elmo_bench.system.terminal import console


class JobSettings(Keys):
    """One job; None leaves a key to the cluster's default."""

    partition: Text | None = None
    account: Text | None = None
    qos: Text | None = None
    constraint: Text | None = None
    gres: Text | None = None
    gpus_per_node: NonNegativeInt | None = None
    cpus_per_task: PositiveInt = 4
    mem_gb: float | None = None
    minutes: PositiveInt = 720
    setup: list[Text] = []


class ClusterSettings(Keys):
    """The keys are explained in the configuration file, conf/cluster/slurm.yaml."""

    at_once: PositiveInt = 8
    attempts: PositiveInt = 5
    warning: NonNegativeInt = 90
    options: dict[str, Any] = {}
    run: JobSettings = JobSettings()
    prepare: JobSettings = JobSettings()


def read(name: str, changes: Sequence[str] = ()) -> ClusterSettings:
    """The settings of a configuration file.

    Raises:
        UserError: there is no such configuration file, a key that it does not know, or a value of another type.
    """
    known, path = places.named("cluster"), places.page("cluster", name)
    if name not in known:
        raise UserError(f"on={name}: there is no such file in conf/cluster; {console.choices(name, ['local', *known])}")
    merged = OmegaConf.merge(yaml_text.read(path), OmegaConf.from_dotlist(list(changes)))
    return valid(ClusterSettings, OmegaConf.to_container(merged, resolve=True), "cluster", path=path)
