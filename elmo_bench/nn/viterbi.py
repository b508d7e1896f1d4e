"""The highest-scoring sequence of tags."""

from __future__ import annotations

import torch
from torch import Tensor


@torch.no_grad()
def viterbi(emissions: Tensor, start: Tensor, pairs: Tensor, end: Tensor, mask: Tensor) -> list[list[int]]:
    """The highest-scoring tag sequence of each sentence; -inf in a table forbids a tag or a transition.

    Args:
        emissions: (B, T, K), finite.
        start, pairs, end: (K,), (K, K) [from, to], (K,) scores.
        mask: (B, T) bool, true on words, which come first; at least one in every sentence.

    Returns:
        B lists, as long as the sentences. If the tables allow no sequence at all, the result is arbitrary.
    """
    last = mask.sum(1) - 1  # (B,)
    score = start + emissions[:, 0]  # (B, K)
    scores, pointers = [score], []
    for step in range(1, emissions.shape[1]):
        best, pointer = (score.unsqueeze(2) + pairs).max(1)  # (B, K), (B, K)
        score = best + emissions[:, step]
        scores.append(score)
        pointers.append(pointer)
    rows = torch.arange(len(last), device=last.device)
    final = torch.stack(scores, 1)[rows, last] + end  # (B, K)
    tag = closing = final.argmax(1)  # (B,)
    path = []
    for step in range(emissions.shape[1] - 1, -1, -1):
        if step < len(pointers):
            tag = pointers[step].gather(1, tag.unsqueeze(1)).squeeze(1)
        tag = torch.where(step >= last, closing, tag)
        path.append(tag)
    best_path = torch.stack(path[::-1], 1).tolist()  # B x T
    return [tags[: n + 1] for tags, n in zip(best_path, last.tolist(), strict=True)]
