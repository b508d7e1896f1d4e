"""ESIM against a plain restatement sentence by sentence, gradients, padding and order, places of ELMo, learning."""

import pytest
import torch
from torch import Tensor, nn

from elmo_bench.task import Batch, Embedded
from elmo_bench.text.vocabulary import Vocabulary
from tasks.snli.head import SnliHead, SnliScores
from tasks.snli.pairs import LABELS
from tests.fakes import embedded, for_each

VOCABULARIES = {"labels": Vocabulary(LABELS, special=False)}


def head(elmo: int = 0, **options) -> SnliHead:
    """Small; its biases keep enough of the few rectifiers awake for a test to see something."""
    torch.manual_seed(1)
    model = SnliHead(6, elmo, VOCABULARIES, **({"hidden": 5} | options))
    for layer in (model.compare, model.combine, model.classify):
        nn.init.uniform_(layer.bias, 0.2, 1.0)
    return model


def run(model: SnliHead, premise: Embedded, hypothesis: Embedded, gold: list[int] | None = None) -> SnliScores:
    labels = {} if gold is None else {"label": torch.tensor(gold)}
    return model({"premise": premise, "hypothesis": hypothesis}, Batch([], {}, labels))


# The model.


def plain_esim(model: SnliHead, p: Tensor, h: Tensor, p_elmo: Tensor | None, h_elmo: Tensor | None) -> Tensor:
    """One pair by the equations of Chen et al. 2017 (11)-(20), word by word: p (S, D) and h (T, D) -> (K,)."""

    def bilstm(net, x: Tensor) -> Tensor:  # (T, D) -> (T, 2H), the cell written out
        sides = []
        for lstm, steps in ((net.forward_lstm, range(len(x))), (net.backward_lstm, range(len(x) - 1, -1, -1))):
            state, cell, out = torch.zeros(lstm.hidden_size), torch.zeros(lstm.hidden_size), {}
            for t in steps:
                z = lstm.weight_ih_l0 @ x[t] + lstm.bias_ih_l0 + lstm.weight_hh_l0 @ state + lstm.bias_hh_l0
                i, f, g, o = z.chunk(4)
                cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
                out[t] = state = o.sigmoid() * cell.tanh()
            sides.append(torch.stack([out[t] for t in range(len(x))]))
        return torch.cat(sides, dim=1)

    a, b = bilstm(model.encoder, p), bilstm(model.encoder, h)
    if p_elmo is not None and h_elmo is not None:
        a, b = torch.cat([a, p_elmo], 1), torch.cat([b, h_elmo], 1)

    def aligned(x: Tensor, y: Tensor) -> Tensor:
        rows = []
        for i in range(len(x)):
            e = torch.stack([x[i] @ y[j] for j in range(len(y))]).exp()
            rows.append(sum(e[j] / e.sum() * y[j] for j in range(len(y))))
        return torch.stack(rows)  # type: ignore[arg-type]

    pooled = []
    for x, y in ((a, b), (b, a)):
        tilde = aligned(x, y)
        m = torch.cat([x, tilde, x - tilde, x * tilde], dim=1)
        v = bilstm(model.inference, (m @ model.compare.weight.T + model.compare.bias).clamp(min=0))
        pooled += [v.mean(0), v.max(0).values]
    v = torch.cat(pooled)
    hidden = (model.combine.weight @ v + model.combine.bias).clamp(min=0)
    return model.classify.weight @ hidden + model.classify.bias


@for_each("elmo", "0 4")
def test_scores_equal_the_equations_pair_by_pair(elmo):
    """So neither the padding, which is noise, nor the other pairs matter."""
    model = head(elmo).eval()
    premise, hypothesis = embedded(4, 1, 7, elmo=elmo, extra=2), embedded(2, 5, 3, elmo=elmo)
    scores = run(model, premise, hypothesis, [0, 2, 1])
    for i, (s, t) in enumerate([(4, 2), (1, 5), (7, 3)]):
        sides = [text.elmo[i, :n] if text.elmo is not None else None for text, n in ((premise, s), (hypothesis, t))]
        expected = plain_esim(model, premise.x[i, :s], hypothesis.x[i, :t], *sides)
        torch.testing.assert_close(scores.logits[i], expected, atol=1e-5, rtol=1e-5)
    assert scores.loss is not None
    picked = scores.logits.log_softmax(1)[range(3), [0, 2, 1]]
    torch.testing.assert_close(scores.loss, -picked.mean())


def test_dropout_is_on_in_training_alone():
    model, premise, hypothesis = head(), embedded(3), embedded(2)
    one, two = (run(model.train(), premise, hypothesis).logits for _ in range(2))
    assert not torch.equal(one, two)
    one, two = (run(model.eval(), premise, hypothesis).logits for _ in range(2))
    assert torch.equal(one, two)
    assert (model.aligned_dropout.p, head(4).aligned_dropout.p) == (0, 0.5)  # of words with ELMo at the output


def test_l2_weighs_the_matrices_and_training_alone():
    model, premise, hypothesis = head(l2=0.01, dropout=0.0), embedded(3), embedded(2)
    plain = run(model.eval(), premise, hypothesis, [0]).loss
    with_penalty = run(model.train(), premise, hypothesis, [0]).loss
    assert plain is not None
    assert with_penalty is not None
    squares = sum(float(p.detach().square().sum()) for name, p in model.named_parameters() if "bias" not in name)
    assert float((with_penalty - plain).detach()) == pytest.approx(0.01 * squares, rel=1e-3)


def test_initialisation():
    torch.manual_seed(2)
    model = SnliHead(30, 0, VOCABULARIES, hidden=20)
    for lstm in (model.encoder.forward_lstm, model.inference.backward_lstm):
        weights, h = {name: p.detach() for name, p in lstm.named_parameters()}, lstm.hidden_size
        recurrent = weights["weight_hh_l0"]
        torch.testing.assert_close(recurrent.T @ recurrent, torch.eye(h), atol=1e-5, rtol=0)
        biases = weights["bias_ih_l0"] + weights["bias_hh_l0"]
        assert biases.tolist() == [0.0] * h + [1.0] * h + [0.0] * 2 * h
        bound = (6 / sum(weights["weight_ih_l0"].shape)) ** 0.5
        assert 0.9 * bound < float(weights["weight_ih_l0"].abs().max()) <= bound
    for layer in (model.compare, model.combine, model.classify):
        bound = (6 / sum(layer.weight.shape)) ** 0.5
        assert 0.8 * bound < float(layer.weight.detach().abs().max()) <= bound
        assert not layer.bias.any()
