"""How often the 95 % intervals of gains cover the truth, in simulation: `elmo-bench analysis.coverage`."""

from __future__ import annotations

from elmo_bench.system.terminal.command import Argument, Command, whole

COMMAND = Command(
    "analysis.coverage",
    "how often the intervals of gains cover the truth, in simulation",
    (
        Argument("seeds", "in each arm", 3, "N", whole(1)),
        Argument("clusters", "of items in the test set", 300, "N", whole(2)),
        Argument("trials", "for each deviation of the seeds", 2000, "N", whole(1)),
    ),
    (("", "three seeds, about ten minutes"), ("seeds=5 clusters=50", "another experiment")),
    ("Prints, for several deviations of the seeds, the share of intervals that hold the true gain, 0.",),
    page="statistics",
)


def main() -> None:
    """The entry point."""
    from elmo_bench.analysis.coverage import NOISES, covered

    given = COMMAND.parse()
    print("deviation of the seeds (logits)  intervals that hold the true gain")
    for noise in NOISES:
        print(f"{noise:31.2f}  {100 * covered(**given, noise=noise):32.1f} %", flush=True)
