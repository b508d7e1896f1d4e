"""What a cluster is asked for: a file in conf/cluster/, changed by `cluster.KEY=VALUE`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import yaml_text
from elmo_bench.system.terminal import console


@dataclass
class JobSettings:
    """One job; None leaves a key to the cluster's default."""

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    gres: str | None = None
    gpus_per_node: int | None = None
    cpus_per_task: int = 4
    mem_gb: float | None = None
    minutes: int = 720
    setup: list[str] = field(default_factory=list)


@dataclass
class ClusterSettings:
    """The keys are explained in the configuration file, conf/cluster/slurm.yaml."""

    at_once: int = 8
    attempts: int = 5
    warning: int = 90
    options: dict[str, Any] = field(default_factory=dict)
    run: JobSettings = field(default_factory=JobSettings)
    prepare: JobSettings = field(default_factory=JobSettings)


def read(name: str, changes: Sequence[str] = ()) -> ClusterSettings:
    """The settings of a configuration file.

    Raises:
        UserError: there is no such configuration file, a key that it does not know, or a value of another type.
    """
    known, path = places.named("cluster"), places.page("cluster", name)
    if name not in known:
        raise UserError(f"on={name}: there is no such file in conf/cluster; {console.choices(name, ['local', *known])}")
    page = yaml_text.read(path)
    try:
        merged = OmegaConf.merge(OmegaConf.structured(ClusterSettings), page, OmegaConf.from_dotlist(list(changes)))
        settings: Any = OmegaConf.to_object(merged)
    except OmegaConfBaseException as error:
        where = f"{', '.join(f'cluster.{one}' for one in changes)}: " if changes else ""
        raise UserError(f"{where}{str(error).splitlines()[0]}", path) from error
    for key in ("at_once", "attempts"):
        if getattr(settings, key) < 1:
            raise UserError(f"cluster.{key}={getattr(settings, key)}: a whole number from 1")
    return settings
