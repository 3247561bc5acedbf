"""The masked language model: an encoder that predicts hidden tokens from the tokens on both sides."""

from npformer.models.transformer.language_model import LanguageModel


class MaskedLanguageModel(LanguageModel):
    """An encoder that predicts hidden tokens from the tokens on both sides.

    In the input, the id of a mask token replaces most of the hidden tokens. In the loss, only hidden tokens
    count (see npformer.data.sentences.masked_batch). BERT has a second task, next sentence prediction, which
    is left out here. BERT uses activation="gelu" and positions="learned". Arguments, shapes and errors: as in
    LanguageModel.

    Source: Devlin et al. 2019, section 3.1.
    """
