"""One run, or with `-m` a sweep of runs: `python -m elmo_bench.train task=ner scale=open elmo.where=input seed=3`.

A recorded run is not run again, unless with `force=true`; an interrupted run resumes from its last completed epoch.
"""

from __future__ import annotations

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from elmo_bench.configuration import pages
from elmo_bench.experiment import usage
from elmo_bench.experiment.launch import train
from elmo_bench.experiment.sweeps import with_arm
from elmo_bench.system import children, console, places


def main() -> None:
    """The entry point."""
    failed: list[Exception] = []

    @hydra.main(config_path=str(places.CONF), config_name="train", version_base="1.3")
    def command(cfg: DictConfig) -> float | None:
        if "Joblib" in HydraConfig.get().launcher["_target_"]:
            children.end_with_parent()
        try:
            record = train(_planned(cfg))
        except Exception as error:
            if not _in_process() or console.explain(error) is None:
                raise
            failed.append(error)  # not raised here: Hydra would print a line too
            if HydraConfig.get().mode == RunMode.MULTIRUN:
                console.show(error)  # at once, before the rest of the sweep runs
            return None
        return record["metrics"]["dev"][record["config"]["task"]["monitor"]]

    def run() -> None:
        with children.told():
            command()
        if failed:
            raise failed[0]

    usage.TRAIN.run(run)


def _planned(cfg: DictConfig) -> DictConfig:
    """What `elmo-bench sweep` makes of a run of a sweep."""
    config = HydraConfig.get()
    given = list(config.overrides.task)
    planned = with_arm(given) if "sweep" in config.runtime.choices else given
    return cfg if planned == given else pages.compose(planned)


def _in_process() -> bool:
    """Whether runs share this process with `main` and its list `failed`; other launchers start new processes."""
    config = HydraConfig.get()
    return config.mode == RunMode.RUN or "BasicLauncher" in config.launcher["_target_"]


if __name__ == "__main__":
    main()
