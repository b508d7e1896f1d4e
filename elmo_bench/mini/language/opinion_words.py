"""Positive and negative opinion words, English and invented."""

from __future__ import annotations

from elmo_bench.mini.language.chance import Chance, Ranked
from elmo_bench.mini.language.morphology import Inventor

# value -> adjectives, nouns, verbs
ADJECTIVES = {
    4: "superb brilliant masterful dazzling wonderful magnificent",
    2: "good charming funny fresh warm witty clever solid moving graceful",
    -2: "dull bland clumsy weak tired messy flat slow silly stale",
    -4: "awful dreadful horrible dire unbearable wretched",
}
NOUNS = {3: "triumph delight gem joy treat", -3: "mess bore failure disaster disgrace"}
VERBS = {3: "dazzle amuse charm delight move", -3: "bore annoy irritate disappoint tire"}


class OpinionWords:
    """Opinion words with their values, by side (1 positive, -1 negative).

    Args:
        seed: of the data set; decides which invented words are positive and which negative.
        namer: makes stems that are not words yet.
        invented: number of invented adjectives per value; per side, half as many nouns and as many verbs. A mild
            adjective may also occur with un-, with the opposite value.
    """

    def __init__(self, seed: int, namer: Inventor, invented: int):
        self._chance = chance = Chance("opinions", seed)
        adjectives: dict[int, list[tuple[str, int]]] = {1: [], -1: []}
        for value, words in ADJECTIVES.items():
            side = 1 if value > 0 else -1
            adjectives[side] += [(word, value) for word in words.split()]
            for _ in range(invented):
                word = namer.stem() + chance.one_of(("y", "ish", "ous", "al", "ic"))
                adjectives[side].append((word, value))
                if abs(value) == 2 and chance.happens(0.5):
                    adjectives[-side].append(("un" + word, -value))
        self.adjectives = {side: self._ranked(adjectives[side]) for side in (1, -1)}
        self.nouns, self.verbs = (
            {
                side: self._ranked([(w, 3 * side) for w in [*table[3 * side].split(), *_stems(namer, invented // 2)]])
                for side in (1, -1)
            }
            for table in (NOUNS, VERBS)
        )

    def _ranked(self, words: list[tuple[str, int]]) -> Ranked[tuple[str, int]]:
        return Ranked(words[:4] + self._chance.shuffled(words[4:]), flat=16)


def _stems(namer: Inventor, n: int) -> list[str]:
    return [namer.stem() for _ in range(n)]
