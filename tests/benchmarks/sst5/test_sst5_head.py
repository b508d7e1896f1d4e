"""The biattentive classification network against its equations written as loops."""

from functools import partial

import torch
from hydra.utils import instantiate

from elmo_bench.configuration import composing
from elmo_bench.nn.feedforward import MaxoutLayers, ReluLayers
from elmo_bench.task import Batch, Embedded
from tasks.sst5.head import Sst5Head, biattend
from tests.fakes import cases, masks, refuses

LENGTHS, D, E = [5, 2, 1, 4], 6, 3
RELU = partial(ReluLayers, sizes=[9, 8], dropout=[0.2, 0.3])


def batch(labels=(0, 4, 2, 3)) -> Batch:
    return Batch([{}] * len(LENGTHS), {}, {"label": torch.tensor(labels)} if labels else {})


def embedded(elmo: bool, padding: float = 0.0) -> dict[str, Embedded]:
    torch.manual_seed(1)
    mask = masks(*LENGTHS)
    x, second = torch.randn(*mask.shape, D), torch.randn(*mask.shape, E)
    x, second = (v.masked_fill(~mask.unsqueeze(2), padding) for v in (x, second))
    return {"tokens": Embedded(x, second if elmo else None, mask)}


def head(elmo: bool = True, classifier=RELU, output_elmo: str = "encoded", **dropouts: float) -> Sst5Head:
    torch.manual_seed(2)
    return Sst5Head(D, E if elmo else 0, {}, 7, 4, 5, classifier, **dropouts, output_elmo=output_elmo)


def test_biattention_is_what_its_equations_say():
    torch.manual_seed(3)
    h = torch.randn(2, 4, 3)
    attended = biattend(h, masks(4, 2))
    for b, n in enumerate((4, 2)):
        for t in range(n):
            weights = torch.softmax(torch.stack([h[b, t] @ h[b, s] for s in range(n)]), 0)
            context = sum((weights[s] * h[b, s] for s in range(n)), torch.zeros(3))
            expected = torch.cat([h[b, t], h[b, t] - context, h[b, t] * context])
            torch.testing.assert_close(attended[b, t], expected)


@cases("""
    elmo  | output
    false | encoded
    true  | encoded
    true  | raw
""")
def test_the_whole_network_is_what_its_equations_say(elmo, output):
    """Text by text, so that neither the others nor the padding matter."""
    model, texts = head(elmo, output_elmo=output).eval(), embedded(elmo, padding=9.0)
    logits = model(texts, batch()).logits
    for b, n in enumerate(LENGTHS):
        text = texts["tokens"]
        one = torch.ones(1, n, dtype=torch.bool)
        u = torch.relu(torch.nn.functional.linear(text.x[b : b + 1, :n], *model.pre_encode[0].parameters()))
        h = model.encoder(u, one)
        if text.elmo is not None and model.elmo_encoder is not None:
            h = torch.cat([h, model.elmo_encoder(text.elmo[b : b + 1, :n], one)], -1)
        g = model.integrator(biattend(h, one), one)[0]
        if text.elmo is not None and output == "raw":
            g = torch.cat([g, text.elmo[b, :n]], -1)
        weights = torch.softmax(g @ model.self_attentive.score.weight[0], 0)
        pooled = torch.cat([g.max(0).values, g.min(0).values, g.mean(0), weights @ g])
        torch.testing.assert_close(logits[b], model.classifier(pooled), rtol=1e-4, atol=1e-5)


def test_the_loss_is_mean_cross_entropy_and_the_best_label_is_the_answer():
    model, texts = head().eval(), embedded(True)
    scores = model(texts, batch())
    log = torch.log_softmax(scores.logits, -1)
    torch.testing.assert_close(scores.loss, -torch.stack([log[0, 0], log[1, 4], log[2, 2], log[3, 3]]).mean())
    assert model(texts, batch(labels=())).loss is None
    answers = model.decode(scores, batch())
    assert answers == [int(row.argmax()) for row in scores.logits]
    assert all(type(answer) is int for answer in answers)


def test_each_dropout_is_one_of_training():
    texts = embedded(True)
    for name in ("embedding_dropout", "pre_encode_dropout", "integrator_dropout"):
        model = head(True, partial(ReluLayers, sizes=[], dropout=[]), "encoded", **{name: 0.5})
        assert not torch.equal(model(texts, batch()).logits, model(texts, batch()).logits)
        model.eval()
        assert torch.equal(model(texts, batch()).logits, model(texts, batch()).logits)


def test_the_last_dropout_is_on_the_pooled_vector():
    """On the words, it would make every pool of a text see other features."""
    model, seen = head(integrator_dropout=0.5), []
    model.classifier.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    model(embedded(True), batch())
    model.eval()(embedded(True), batch())
    in_training, whole = seen
    kept = in_training != 0
    assert 0.3 < kept.float().mean() < 0.7
    torch.testing.assert_close(in_training[kept], 2 * whole[kept])


def test_an_unknown_place_of_elmo_is_refused():
    with refuses("should be 'encoded' or 'raw'"):
        head(output_elmo="cooked")


def test_the_page_has_the_papers_sizes_and_one_override_gives_maxout():
    cfg = composing.compose(["task=sst5", "scale=paper"])
    model = instantiate(cfg.task.head)(input_size=300 + 1024, elmo_size=1024, vocabularies={})
    assert (model.encoder.output_size, model.integrator.output_size) == (600, 600)
    assert model.integrator.forward_lstm.input_size == 3600  # [h ; biLSTM(ELMo)], and with its context three times
    assert model.classifier[0].in_features == 2400
    assert instantiate(cfg.task.optimizer)(model.parameters()).param_groups[0]["lr"] == 1e-4
    assert (cfg.elmo["where"], cfg.elmo["lambda"]) == ("both", 0.001)
    maxout = "task.head.classifier._target_=elmo_bench.nn.feedforward.MaxoutLayers"
    make = instantiate(composing.compose(["task=sst5", maxout]).task.head)
    assert isinstance(make(input_size=9, elmo_size=0, vocabularies={}).classifier, MaxoutLayers)
