"""The NER model: shapes, gradients, independence of padding and order, both places of ELMo, and that it learns."""

import torch
from torch import Tensor, nn

from elmo_bench.nn.char_cnn import CharCNN
from elmo_bench.nn.encoders import BiLSTM
from elmo_bench.nn.feedforward import VariationalDropout
from elmo_bench.task import Batch, Embedded
from elmo_bench.text.batching import pad
from elmo_bench.text.tags import labels
from elmo_bench.text.vocabulary import Vocabulary
from tasks.ner.head import NerHead
from tests.fakes import embedded, for_each, refuses

TAGS = {"labels": Vocabulary(labels(["LOC", "ORG", "PER"], "bioes"), special=False)}


def run(head: NerHead, text: Embedded, gold: Tensor | None = None):
    rows = [{"tokens": ["w"] * int(n)} for n in text.mask.sum(1)]
    batch = Batch(rows, {}, {} if gold is None else {"tags": gold})
    scores = head({"tokens": text}, batch)
    return scores, head.decode(scores, batch)


def test_the_loss_is_the_mean_over_sentences_or_their_sum():
    text, gold, losses = embedded(4, 2, 6, size=12), torch.zeros(3, 6, dtype=torch.int64), {}
    for loss in ("mean", "sum"):
        torch.manual_seed(8)
        losses[loss] = run(NerHead(12, 0, TAGS, hidden=(5,), dropout=0.0, loss=loss), text, gold)[0].loss
    torch.testing.assert_close(losses["sum"], 3 * losses["mean"])
    with refuses("should be 'mean' or 'sum'"):
        NerHead(12, 0, TAGS, loss="median")


def test_elmo_at_the_output_reaches_the_scores_past_the_rnn():
    torch.manual_seed(2)
    head = NerHead(12, 6, TAGS, hidden=(7, 5)).eval()
    text = embedded(4, size=12, elmo=6)
    assert text.elmo is not None
    one, _ = run(head, text)
    changed = text.elmo.clone()
    changed[0, 2] += 1
    two, _ = run(head, text._replace(elmo=changed))
    assert one.loss is two.loss is None  # there are no labels
    differs = (one.emissions != two.emissions).any(2)[0].tolist()
    assert differs == [False, False, True, False]  # no RNN carried it to other words


def test_predictions_are_iob2_whatever_the_scheme_learned():
    torch.manual_seed(3)
    for scheme in ("bioes", "iob2"):
        head = NerHead(4, 0, {"labels": Vocabulary(labels(["PER"], scheme), special=False)}, hidden=(3,))
        nn.init.zeros_(head.project.weight)
        names = head.labels
        wanted = "B-PER E-PER S-PER O".split() if scheme == "bioes" else "B-PER I-PER B-PER O".split()
        emissions = 9.0 * nn.functional.one_hot(torch.tensor([[names.index(tag) for tag in wanted]]), len(names))
        scores, _ = run(head, embedded(4, size=4))
        predictions = head.decode(scores._replace(emissions=emissions.float()), Batch([], {}, {}))
        assert predictions == ["B-PER I-PER B-PER O".split()]


# The parts.


@for_each("dropout", "0.0 0.3")
def test_repeated_words_of_all_lengths_are_encoded_as_if_each_were_alone(dropout):
    """With dropout every word has a mask of its own, drawn as before any word is left out."""
    torch.manual_seed(8)
    cnn = CharCNN(30, 4, {1: 3, 3: 5}, dropout)
    assert cnn.output_size == 8
    words = [torch.randint(1, 30, (length,)).tolist() for length in (1, 9, 2, 17, 3, 9)] * 2
    chars = nn.functional.pad(pad(words), (0, 3)).view(2, 6, -1)  # (2, 6, 20)
    weight = torch.randn(2, 6, 8)

    def plain() -> torch.Tensor:
        x = cnn.dropout(cnn.embedding(chars.flatten(0, 1))).transpose(1, 2)
        outputs = []
        for convolution in cnn.convolutions:
            windows = convolution(x).relu()
            ends = torch.tensor([len(word) for word in words]).unsqueeze(1) + windows.shape[2] - 20
            outputs.append((windows * (torch.arange(windows.shape[2]) < ends).unsqueeze(1)).amax(2))
        return torch.cat(outputs, 1).view(2, 6, 8)

    results = []
    for way in (plain, lambda: cnn(chars)):
        torch.manual_seed(9)
        out = way()
        results.append([out, *torch.autograd.grad((out * weight).sum(), list(cnn.parameters()))])
    torch.testing.assert_close(*results)


def test_bilstm_is_zero_at_padding():
    """What it is at words, the equations of SNLI and SST-5 say."""
    text = embedded(5, 2, 1, size=4)
    assert not BiLSTM(4, 3)(text.x, text.mask)[~text.mask].any()


def test_variational_dropout_drops_the_same_features_at_every_step():
    torch.manual_seed(7)
    dropout = VariationalDropout(0.4)
    out = dropout(torch.ones(50, 6, 40))
    assert out.eq(out[:, :1]).all()
    assert set(out.unique().tolist()) == {0.0, torch.tensor(1 / 0.6).item()}
    assert 0.3 < float((out == 0).float().mean()) < 0.5
    assert not out[0].equal(out[1])
    assert dropout.eval()(out) is out
