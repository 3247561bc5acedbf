"""Figures of components that are not there yet: they come with the rest of the attention family."""

from npformer.figures.entry import REGISTER, Entry

for _entry in (
    Entry("F54", "Soft against hard attention", "S4", "FW", None),
    Entry("F55", "Luong's global attention", "S4", "FW", None),
    Entry("F56", "Luong's local attention", "S4", "FW", None),
    Entry("F57", "The predicted position and its Gaussian", "S4", "FW", None),
    Entry("F60", "Latent attention", "S4", "TR", None),
):
    # a file that draws one takes its place
    REGISTER.setdefault(_entry.id, _entry)
