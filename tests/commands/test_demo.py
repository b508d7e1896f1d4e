"""The page on which trained heads are tried: what it shows, and that it answers over HTTP."""

import re

import pytest

from elmo_bench.commands import demo
from elmo_bench.configuration import pages
from tests.fakes import refuses


def text_of(html: str) -> str:
    return re.sub("<sub>.*?</sub>|<.*?>", "", html)


def test_spans_are_marked_within_spans_and_across_each_other_and_nothing_of_the_text_is_html():
    text = "<b>Ida & her cat</b>"
    html = demo.marked(text, [(3, 16, "A"), (9, 12, "B"), (13, 20, "C")])
    assert text_of(html) == "&lt;b&gt;Ida &amp; her cat&lt;/b&gt;"
    assert html.index("her") < html.index("<b>B</b>") < html.index("<b>A</b>") < html.index("<b>C</b>")


@pytest.mark.parametrize("task", pages.tasks())
def test_each_task_has_examples_that_its_head_answers_with_what_the_page_can_show(task):
    rows = demo.examples()[task]
    assert all(row.keys() == rows[0].keys() for row in rows)
    html, answer = demo.answered(task, rows[0])
    assert "Weights s_j" in html
    assert "<mark" in html or "Probabilities" in html
    assert answer


def test_a_word_is_compared_layer_by_layer_and_a_missing_one_is_told():
    html = demo.compared("mini", "play", "They play chess.", "A play by Ibsen.")
    assert re.findall(r"layer \d</td><td>([\d.-]+)", html)[0] == "1.00"
    with refuses("word=cat does not occur in first"):
        demo.compared("mini", "cat", "They play.", "A cat.")


def test_the_page_answers_over_http_on_this_machine_alone():
    pytest.importorskip("gradio")
    from gradio_client import Client

    page = demo.page({}, "mini")
    _, url, _ = page.launch(server_name=demo.LOCAL, prevent_thread_lock=True, quiet=True, share=False)
    try:
        assert url.startswith("http://127.0.0.1:")
        client = Client(url, verbose=False)
        assert "1.00" in client.predict("play", "They play.", "A play.", api_name="/vectors")
        assert "<mark" in client.predict("Anna Berg flew to Oslo.", api_name="/ner")[0]
        with pytest.raises(Exception, match="word=cat does not occur"):
            client.predict("cat", "They play.", "A play.", api_name="/vectors")
    finally:
        page.close()
