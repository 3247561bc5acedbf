"""The steps of a recorded page. Each module has those of one kind of layer; `recording` collects them."""

from npformer.explorer.steps import attention, embedding, feed_forward, heads, linear, norm, residual
from npformer.explorer.steps.loss import loss_gradient, record_loss
from npformer.explorer.steps.recording import (
    RecordedStep,
    Recording,
    Selection,
    arrays_of,
    require_size,
    steps_data,
)

LAYERS = (attention, embedding, feed_forward, heads, linear, norm, residual)  # their imports make them known

__all__ = [
    "RecordedStep",
    "Recording",
    "Selection",
    "arrays_of",
    "loss_gradient",
    "record_loss",
    "require_size",
    "steps_data",
]
