"""Pictures: arrays in, matplotlib figures out. Nothing is shown, and nothing is saved unless asked.

With npformer.figures the only part that imports matplotlib; it leaves pyplot alone.
"""

from matplotlib.figure import Figure

from npformer.plots.animation import animated_gif, key_frames
from npformer.plots.bars import probability_bars, probability_panels
from npformer.plots.boxes import layer_pair
from npformer.plots.cells import Grid, cell_grid, cell_product
from npformer.plots.curve_page import Curve, Panel, curve_page
from npformer.plots.curves import curves
from npformer.plots.heatgrid import attention_grid
from npformer.plots.heatmap import attention_map, mask_map, score_map, softmax_panels, value_map
from npformer.plots.masks import leak_map, mask_panels
from npformer.plots.overlap import text_problems
from npformer.plots.style import save
from npformer.plots.tree import beam_tree, steps_of_trace
from npformer.plots.words import word_lines

__all__ = [
    "Curve",
    "Figure",
    "Grid",
    "Panel",
    "animated_gif",
    "attention_grid",
    "attention_map",
    "beam_tree",
    "cell_grid",
    "cell_product",
    "curve_page",
    "curves",
    "key_frames",
    "layer_pair",
    "leak_map",
    "mask_map",
    "mask_panels",
    "probability_bars",
    "probability_panels",
    "save",
    "score_map",
    "softmax_panels",
    "steps_of_trace",
    "text_problems",
    "value_map",
    "word_lines",
]
