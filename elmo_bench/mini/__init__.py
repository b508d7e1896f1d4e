"""The mini scale: a seeded world whose events become the data of all six tasks and the plain text for a biLM.

The same version, seed and sizes give the same bytes on any platform and Python. `data` makes a data set, unless it
exists; its files are described in `build`. Here are the makers that configuration files name: whoever asks them for a
recipe does not load the language.
"""

from elmo_bench.mini.bilm import MiniBilm
from elmo_bench.mini.data import MiniData

__all__ = ["MiniBilm", "MiniData"]
