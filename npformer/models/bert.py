"""The masked language model: an encoder that predicts hidden tokens from the tokens on both sides."""

from npformer.models.transformer.language_model import LanguageModel


class MaskedLanguageModel(LanguageModel):
    """An encoder that predicts hidden tokens from the tokens on both sides.

    In the input, hidden tokens are replaced by an ordinary id. In the loss, only hidden tokens count (see
    npformer.data.sentences.masked_batch). This is the masked language model of BERT without its second task,
    next sentence prediction. BERT uses activation="gelu" and positions="learned". Arguments, shapes and
    errors: as in LanguageModel.

    Source: Devlin et al. 2019, section 3.1.
    """
