"""The causal language model: a decoder that predicts the next token from the tokens before it."""

from dataclasses import replace
from typing import Any

from npformer.backend import Array
from npformer.functional.masks import causal_mask
from npformer.models.transformer.language_model import LanguageModel
from npformer.nn.context import AttentionMask


class CausalLanguageModel(LanguageModel):
    """A decoder without an encoder, which predicts the next token from the tokens before it.

    Without an encoder there is no cross-attention. So each layer consists of self-attention and a
    feed-forward network, like an encoder layer, but with a causal mask. Arguments, shapes and errors: as in
    LanguageModel.

    Source: Radford et al. 2018, section 3.1; Liu et al. 2018.
    """

    def mask(self, ids: Any) -> AttentionMask:
        """Return the AttentionMask that allows a token to attend to itself and to the tokens before it."""
        mask = super().mask(ids)
        return replace(mask, allowed=mask.allowed & causal_mask(ids.shape[1], ids))  # (B, 1, T, T)

    def decode_step(self, ids: Any, start: int, kv_cache: Any) -> tuple[Array, Any]:
        """Compute the logits of the next token from the last token and the KV cache.

        Args:
            ids: The last token of each sentence, of shape (B,).
            start: The position of these tokens.
            kv_cache: The KV cache that the previous call returned, or None at the first position.

        Returns:
            The logits, of shape (B, V), and the new KV cache.

        Raises:
            UserError: If ids are outside the vocabulary, or if the sentence becomes longer than max_length.
        """
        x, _ = self.embedding.forward(self._take_ids(ids[:, None], start), start=start)  # (B, 1, D)
        x, kv_cache = self.encoder.decode_step(x, kv_cache)
        logits, _ = self.output.forward(x)  # (B, 1, V)
        return logits[:, 0], kv_cache
