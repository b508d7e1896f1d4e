"""Arguments of Lightning's Trainer below `trainer.` that are answered with the key that sets them.

They are listed here, so that a recorded run or a wrong key loads no Lightning; a test compares them with its signature.
"""

PRECISIONS = {"32": "32-true", "64": "64-true", "16": "16-mixed", "bf16": "bf16-mixed"}  # as older releases write them
WHOLE = "dev and test are scored whole, and dev after every epoch; debug=fast or debug=limit tries a run out"
ENDS = "task.fit.epochs and task.fit.patience say when training ends"
OURS = "this is decided here, so that a resumed run equals an undisturbed one"
ANSWERS = {
    "max_epochs": "task.fit.epochs sets it",
    "gradient_clip_val": "task.clip.value sets it",
    "gradient_clip_algorithm": "task.clip.by sets it (norm or value)",
    "limit_train_batches": "trainer.limit_batches sets it",
    "callbacks": "callbacks=NAME adds some (conf/callbacks/), and +callbacks.NAME._target_=CLASS any other",
    "logger": "logger=NAME chooses it (conf/logger/)",
    "enable_progress_bar": "trainer.progress sets it (auto, true or false)",
    "gpu": "trainer.devices=[N] names a GPU by its number",
    "default_root_dir": "results_root sets it",
    "strategy": "trainer.devices=N trains with DDP, a process a device; there is no other strategy",
    "num_nodes": "a run has one machine; sweep on=slurm spreads the runs of a sweep over many",
    **dict.fromkeys(("max_steps", "min_steps", "max_time"), ENDS),
    **dict.fromkeys(("limit_val_batches", "limit_test_batches", "limit_predict_batches"), WHOLE),
    **dict.fromkeys(("val_check_interval", "check_val_every_n_epoch", "num_sanity_val_steps"), WHOLE),
    **dict.fromkeys(("enable_checkpointing", "enable_model_summary", "use_distributed_sampler", "barebones"), OURS),
    **dict.fromkeys(("reload_dataloaders_every_n_epochs", "plugins", "model_registry"), OURS),
}
