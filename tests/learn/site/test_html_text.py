"""Changes to finished HTML."""

from npformer.learn.site.html_text import headings_of, plain_text, replace_text, slug, with_heading_ids


def test_text_is_replaced_outside_of_some_elements_only():
    html = '<p title="a">a <code>a</code> <img alt="a"> a<br>a</p><pre>a <b>a</b></pre>a'
    made = replace_text(html, lambda text: text.replace("a", "X"), ("code", "pre"))
    assert made == '<p title="a">X <code>a</code> <img alt="a"> X<br>X</p><pre>a <b>a</b></pre>X'


def test_headings_get_ids_that_differ():
    headings = ("All tokens, at <em>once</em>", "All tokens at once", "…")
    html = "<h1>A</h1><h2>{}</h2><h3>x &lt; y</h3><h2>{}</h2><h2>{}</h2>".format(*headings)
    made = with_heading_ids(html)
    assert made == (
        '<h1>A</h1><h2 id="all-tokens-at-once">All tokens, at <em>once</em></h2><h3 id="x-y">x &lt; y</h3>'
        '<h2 id="all-tokens-at-once-2">All tokens at once</h2><h2 id="part">…</h2>'
    )
    assert headings_of(made) == [
        ("all-tokens-at-once", "All tokens, at once"),
        ("all-tokens-at-once-2", "All tokens at once"),
        ("part", "…"),
    ]


def test_plain_text_and_slugs():
    assert plain_text("<b>a\n &amp;</b> b") == "a & b"
    assert slug("Ünïcode d_model √dₖ") == "ünïcode-d-model-dk"
