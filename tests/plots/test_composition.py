"""Tests of key frames and animated GIFs."""

import numpy as np
import pytest
from PIL import Image

from npformer.errors import UserError
from npformer.plots import animated_gif, cell_grid, key_frames, word_lines

WEIGHTS = np.random.default_rng(0).dirichlet(np.ones(4), (3, 4))
WORDS = ["Je", "suis", "étudiant", "."]


def lines(query, ax=None):
    return word_lines(WEIGHTS, WORDS, WORDS, query=query, ax=ax)


def test_an_animation_has_one_frame_for_each_figure_and_reproducible_bytes(tmp_path):
    path = animated_gif(lines, [0, 2, 3], tmp_path / "a.gif", seconds=0.5)
    again = animated_gif(lines, [0, 2, 3], str(tmp_path / "b.gif"), seconds=0.5)
    assert path.read_bytes() == again.read_bytes()
    with Image.open(path) as image:
        assert image.n_frames == 3
        assert image.info["duration"] == 500
        assert image.info["loop"] == 0
        size, frames = image.size, []
        for index in range(3):
            image.seek(index)
            frames.append(np.asarray(image.convert("RGB"), np.int64))
    assert size == tuple((lines(0).get_size_inches() * 150).astype(int))
    assert np.abs(frames[0] - frames[1]).max() > 100


def test_wrong_frames_are_refused(tmp_path):
    for wrong in (
        lambda: animated_gif(lines, [0], tmp_path / "a.png"),
        lambda: animated_gif(lines, [], tmp_path / "a.gif"),
        lambda: animated_gif(lines, [0], tmp_path / "no" / "a.gif"),
        lambda: animated_gif(lines, [0], tmp_path / "a.gif", seconds=0),
        lambda: animated_gif(lambda n: cell_grid(np.eye(n)), [1, 9], tmp_path / "a.gif"),
        lambda: key_frames(lines, []),
        lambda: key_frames(lines, [0, 1], names=["one"]),
        lambda: key_frames(lines, [0], columns=0),
        lambda: key_frames(lines, [0] * 9),
    ):
        with pytest.raises(UserError):
            wrong()
    assert list(tmp_path.iterdir()) == []
