"""PyTorch modules: convert them to layers of npformer and back, and read the attention weights.

This package needs PyTorch. Importing npformer or npformer.interop does not import it.
"""

from npformer.interop.torch.layers import from_torch
from npformer.interop.torch.maps import attention_maps
from npformer.interop.torch.modules import to_torch

__all__ = ["attention_maps", "from_torch", "to_torch"]
