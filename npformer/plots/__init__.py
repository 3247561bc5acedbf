"""Functions that draw arrays and return matplotlib figures. They show nothing, and only `save` writes files.

- heat_maps: attention weights, scores, masks, and a grid of all heads
- masks: the pictures of `npformer masks`
- attention_arrays: the attention of a whole model, in the forms in which libraries return it
- attention_lines: attention as lines between tokens
- images: attention over an image
- cells, board, boxes: matrices as cells, and schematics of boxes and arrows
- lens_maps: the predictions of every layer, and the effects of patches
- graph, flow: a computation of numbers, or of arrays, with its gradients
- bars, curve_plots, search_tree: probabilities and scores, curves, and the tree of a beam search
- composition: several pictures in one figure, key frames, and GIFs
- palette: colours
- raster, sixel: figures as terminals show them, without and with images
- style: fonts, text sizes, and saving
- layout: figures, axes and titles at places in inches
- legibility: a check that all text can be read

Only this package and npformer.learn.figures import matplotlib, and neither imports pyplot.
"""

from matplotlib.figure import Figure

from npformer.plots.attention_arrays import attention
from npformer.plots.attention_lines import word_lines
from npformer.plots.bars import probability_bars, probability_panels, score_bars
from npformer.plots.cells import Grid, cell_grid, cell_product
from npformer.plots.composition import animated_gif, key_frames
from npformer.plots.curve_plots import Curve, Panel, curve_page, curves
from npformer.plots.flow import Step, gradient_flow
from npformer.plots.graph import computation_graph
from npformer.plots.heat_maps import (
    attention_grid,
    attention_map,
    mask_map,
    score_map,
    softmax_panels,
    value_map,
)
from npformer.plots.images import image_attention
from npformer.plots.legibility import text_problems
from npformer.plots.lens_maps import patch_grid, prediction_grid
from npformer.plots.masks import leak_map, mask_panels
from npformer.plots.search_tree import beam_tree, steps_of_trace
from npformer.plots.style import save

__all__ = [
    "Curve",
    "Figure",
    "Grid",
    "Panel",
    "Step",
    "animated_gif",
    "attention",
    "attention_grid",
    "attention_map",
    "beam_tree",
    "cell_grid",
    "cell_product",
    "computation_graph",
    "curve_page",
    "curves",
    "gradient_flow",
    "image_attention",
    "key_frames",
    "leak_map",
    "mask_map",
    "mask_panels",
    "patch_grid",
    "prediction_grid",
    "probability_bars",
    "probability_panels",
    "save",
    "score_bars",
    "score_map",
    "softmax_panels",
    "steps_of_trace",
    "text_problems",
    "value_map",
    "word_lines",
]
