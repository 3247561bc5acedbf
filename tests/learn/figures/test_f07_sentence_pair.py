"""Tests of F07: the map and the lines of a sentence pair show the trained model's weights."""

import numpy as np
import pytest
from figure_cells import draw, picture
from trained_oracle import Oracle, close, column, drawn, line_weights, split

CAT = split("the black cat drinks some milk")
CAT_FR = split("le chat noir boit du lait")


def shown_map(ax):
    return np.asarray(ax.images[0].get_array())


@pytest.mark.parametrize("layer", [0, 1])
def test_the_map_and_the_lines_of_a_sentence_pair(studio, oracle, layer):
    figure = picture("F07", studio, translation=" ".join(CAT_FR), layer=layer)
    weights = oracle.weights(CAT, CAT_FR, "cross", layer).mean(0)
    as_map, as_lines = figure.axes
    assert close(shown_map(as_map), weights)
    labels = {(round(t.get_position()[1]), round(t.get_position()[0])): t.get_text() for t in as_map.texts}
    for place, weight in np.ndenumerate(weights):
        assert abs(float(labels[place]) - weight) < 0.006
    assert close(line_weights(as_lines)[0], drawn(weights))
    assert column(as_lines, "right") == [*CAT_FR, "</S>"]
    assert [t.get_text() for t in as_map.get_xticklabels()] == [*CAT, "</S>"]
    assert [t.get_text() for t in as_map.get_yticklabels()] == [*CAT_FR, "</S>"]


def test_the_frames_are_the_moments_of_training(studio):
    frames = draw("F07", studio, translation=" ".join(CAT_FR)).frames
    assert len(frames) == len(studio.snapshots()) == 2
    for frame, step in zip(frames, (0, studio.steps), strict=True):
        moment = frame()
        then = Oracle(studio.folder, f"step-{step:06}").weights(CAT, CAT_FR, "cross", 1).mean(0)
        assert close(shown_map(moment.axes[0]), then)
        assert any(f"after {step} steps" in t.get_text() for t in moment.texts)
