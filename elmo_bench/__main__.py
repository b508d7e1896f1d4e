"""The console command `elmo-bench COMMAND KEY=VALUE ...`, the same as `python -m elmo_bench COMMAND KEY=VALUE ...`."""

from elmo_bench.commands.command import main

if __name__ == "__main__":
    main()
