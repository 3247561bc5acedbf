"""Invented words: neither in the known words nor in the source."""

from npformer.generation.invented_words import find_invented_words, known_words, words_of

TEXT = ["Ein Mann fährt Rad.", "zwei hunde &apos;s t-shirt ."]


def test_words_are_runs_of_letters_in_lower_case():
    assert words_of("Ein T-Shirt, 2 Äpfel_x.") == ["ein", "t", "shirt", "äpfel", "x"]
    assert words_of("das ist karl &apos;s &amp; &quot; haus &quot; .") == ["das", "ist", "karl", "s", "haus"]
    assert known_words(TEXT) == {"ein", "mann", "fährt", "rad", "zwei", "hunde", "s", "t", "shirt"}


def test_words_that_nobody_wrote_are_invented():
    translations = ["Ein Hundmann trifft Bob.", "", "zwei hundmann hunde radmann"]
    sources = ["a man meets Bob", "", "bob"]
    references = ["Ein Mann trifft Bob.", "", "zwei radmann"]
    found = find_invented_words(translations, sources, references, known_words(TEXT))
    assert found.invented == ("hundmann", "trifft", "hundmann", "radmann")  # Bob is copied
    assert found.in_reference == 2  # trifft and radmann
    assert found.words == 8
    assert found.share == 0.5
