"""The tokenizer classes of transformers: how each changes a text, splits it into words, and joins tokens.

Where a folder names one of these classes, `transformers.AutoTokenizer` takes the tokens, the merges and the
special tokens from tokenizer.json, and the rest from the class.
"""

import base64
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from npformer.interop.pieces import WORD_BEGIN
from npformer.interop.token_settings import TokenSettings

# Qwen2 splits contractions, words, single digits, punctuation marks and spaces before it joins bytes
QWEN2_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_END = "<|endoftext|>"


class TokenizerClass(NamedTuple):
    """A tokenizer class of transformers.

    Attributes:
        arrange: Set what a `tokenizers.Tokenizer` does to a text before and after its model splits words.
        defaults: The special tokens, unless tokenizer_config.json has others.
        ends: The names of the special tokens before and after every text, if the class sets them. None
            stands for no token.
    """

    arrange: Callable[[Any, TokenSettings], None]
    defaults: dict[str, str]
    ends: tuple[str | None, ...] | None = None


def arrange_gpt2(tokenizer: Any, settings: TokenSettings) -> None:
    """Split a text into words with the space before them, and words into bytes."""
    from tokenizers import decoders, pre_tokenizers

    space = settings.get("add_prefix_space", bool, False)
    tokenizer.normalizer = None
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=space)
    tokenizer.decoder = decoders.ByteLevel()


def arrange_gpt_neox(tokenizer: Any, settings: TokenSettings) -> None:
    """Compose letters and marks, and go on as GPT-2 does."""
    from tokenizers import normalizers

    arrange_gpt2(tokenizer, settings)
    tokenizer.normalizer = normalizers.NFC()


def arrange_qwen2(tokenizer: Any, settings: TokenSettings) -> None:
    """Compose letters and marks, and split the text as GPT-2 does, by another pattern."""
    from tokenizers import Regex, decoders, normalizers, pre_tokenizers

    space = settings.get("add_prefix_space", bool, False)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN2_PATTERN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=space, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()


def arrange_llama(tokenizer: Any, settings: TokenSettings) -> None:
    """Write ▁ for spaces and before the first word, and decode the tokens of single bytes."""
    from tokenizers import decoders, pre_tokenizers

    space = settings.get("add_prefix_space", bool, True)
    scheme = "always" if settings.get("legacy", bool, False) else "first"  # always: also after special tokens
    tokenizer.normalizer = None
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(
        replacement=WORD_BEGIN, prepend_scheme=scheme if space else "never", split=False
    )
    steps = [decoders.Replace(WORD_BEGIN, " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if space else steps)


def arrange_gemma(tokenizer: Any, settings: TokenSettings) -> None:
    """Write ▁ for spaces, and decode the tokens of single bytes."""
    from tokenizers import decoders, normalizers, pre_tokenizers

    tokenizer.normalizer = normalizers.Replace(" ", WORD_BEGIN)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    steps = [decoders.Replace(WORD_BEGIN, " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence(steps)
    tokenizer.model.fuse_unk, tokenizer.model.byte_fallback = True, True
    tokenizer.model.unk_token = settings.token("unk_token")


def arrange_bert(tokenizer: Any, settings: TokenSettings) -> None:
    """Lowercase a text and strip its accents, unless the settings say otherwise, and split it into words."""
    from tokenizers import decoders, normalizers, pre_tokenizers

    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=settings.get("tokenize_chinese_chars", bool, True),
        strip_accents=settings.get("strip_accents", bool, None),  # None: as lowercase
        lowercase=settings.get("do_lower_case", bool, True),
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")


def arrange_xlm_roberta(tokenizer: Any, settings: TokenSettings) -> None:
    """Split a text at spaces, and write ▁ before each word. What the file normalizes stays as it is."""
    from tokenizers import decoders, pre_tokenizers

    scheme = "always" if settings.get("add_prefix_space", bool, True) else "never"
    marks: dict[str, Any] = {"replacement": WORD_BEGIN, "prepend_scheme": scheme}
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(**marks)]
    )
    tokenizer.decoder = decoders.Metaspace(**marks)


def arrange_t5(tokenizer: Any, settings: TokenSettings) -> None:
    """Replace characters as the folder's table says, and go on as XLM-RoBERTa does."""
    arrange_xlm_roberta(tokenizer, settings)
    tokenizer.normalizer = _characters(tokenizer)


def arrange_mbart(tokenizer: Any, settings: TokenSettings) -> None:
    """Split a text as XLM-RoBERTa does, with all its characters as they are."""
    arrange_xlm_roberta(tokenizer, settings)
    tokenizer.normalizer = None


def arrange_mbart50(tokenizer: Any, settings: TokenSettings) -> None:
    """Replace characters as the folder's table says, join spaces, and write ▁ for them."""
    from tokenizers import Regex, decoders, normalizers, pre_tokenizers

    marks: dict[str, Any] = {"replacement": WORD_BEGIN, "prepend_scheme": "always"}
    steps = [_characters(tokenizer), normalizers.Replace(Regex(" {2,}"), " ")]
    tokenizer.normalizer = normalizers.Sequence([step for step in steps if step is not None])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(**marks)
    tokenizer.decoder = decoders.Metaspace(**marks)


def _characters(tokenizer: Any) -> Any:
    """Return the step of a tokenizer that replaces characters by those of a table, or None if it has none."""
    from tokenizers import normalizers

    normalizer = tokenizer.normalizer  # its state is its JSON
    state = {} if normalizer is None else json.loads(normalizer.__getstate__())
    for step in state.get("normalizers", [state]):
        if step.get("type") == "Precompiled":
            return normalizers.Precompiled(base64.b64decode(step["precompiled_charsmap"]))
    return None


def surround(tokenizer: Any, first: str | None, *last: str | None) -> None:
    """Let a tokenizer put special tokens before and after every text.

    Args:
        tokenizer: The tokenizer, of the library tokenizers.
        first: The token before the text, or None for no token.
        last: The tokens after the text, each a token or None for no token.
    """
    from tokenizers import processors

    ends = [token for token in (first, *last) if token is not None]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=[token for token in (first, "$A", *last) if token is not None],
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in ends],
    )


_BERT = TokenizerClass(
    arrange_bert,
    {
        "unk_token": "[UNK]",
        "sep_token": "[SEP]",
        "pad_token": "[PAD]",
        "cls_token": "[CLS]",
        "mask_token": "[MASK]",
    },
    ("cls_token", "sep_token"),
)
_ROBERTA_TOKENS = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "sep_token": "</s>",
    "cls_token": "<s>",
    "unk_token": "<unk>",
    "pad_token": "<pad>",
    "mask_token": "<mask>",
}
_MBART_TOKENS = _ROBERTA_TOKENS | {"src_lang": "en_XX"}
_ROBERTA = TokenizerClass(arrange_gpt2, _ROBERTA_TOKENS, ("cls_token", "sep_token"))
_XLM_ROBERTA = TokenizerClass(arrange_xlm_roberta, _ROBERTA_TOKENS, ("bos_token", "eos_token"))
CLASSES = {
    "GPT2Tokenizer": TokenizerClass(arrange_gpt2, {"bos_token": _END, "eos_token": _END, "unk_token": _END}),
    "GPTNeoXTokenizer": TokenizerClass(
        arrange_gpt_neox,
        {"bos_token": _END, "eos_token": _END, "unk_token": _END, "pad_token": "<|padding|>"},
    ),
    "Qwen2Tokenizer": TokenizerClass(
        arrange_qwen2, {"eos_token": _END, "unk_token": _END, "pad_token": _END}
    ),
    "LlamaTokenizer": TokenizerClass(
        arrange_llama, {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    ),
    "GemmaTokenizer": TokenizerClass(
        arrange_gemma,
        {f"{name}_token": f"<{name}>" for name in ("unk", "bos", "eos", "pad", "mask")},
    ),
    "BertTokenizer": _BERT,
    "DistilBertTokenizer": _BERT,
    "RobertaTokenizer": _ROBERTA,
    "BartTokenizer": _ROBERTA,
    "MBartTokenizer": TokenizerClass(arrange_mbart, _MBART_TOKENS, (None, "eos_token", "src_lang")),
    "MBart50Tokenizer": TokenizerClass(arrange_mbart50, _MBART_TOKENS, ("src_lang", "eos_token")),
    "T5Tokenizer": TokenizerClass(
        arrange_t5,
        {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"},
        (None, "eos_token"),
    ),
    "XLMRobertaTokenizer": _XLM_ROBERTA,
    "CamembertTokenizer": _XLM_ROBERTA,
}
# the families of which transformers takes all from tokenizer.json, whatever class tokenizer_config.json names
WITHOUT_CLASS = {"mistral", "mixtral", "phi3", "olmo2"}
# the class of a family, where tokenizer_config.json names none
OF_FAMILY = {
    "gpt2": "GPT2Tokenizer",
    "opt": "GPT2Tokenizer",
    "gpt_neox": "GPTNeoXTokenizer",
    "qwen2": "Qwen2Tokenizer",
    "qwen3": "Qwen2Tokenizer",
    "qwen3_moe": "Qwen2Tokenizer",
    "gemma": "GemmaTokenizer",
    "gemma2": "GemmaTokenizer",
    "gemma3_text": "GemmaTokenizer",
    "bert": "BertTokenizer",
    "distilbert": "BertTokenizer",
    "roberta": "RobertaTokenizer",
    "xlm-roberta": "XLMRobertaTokenizer",
    "camembert": "CamembertTokenizer",
    "bart": "RobertaTokenizer",
    "mbart": "MBartTokenizer",
    "t5": "T5Tokenizer",
}


def class_of(settings: TokenSettings, family: str) -> TokenizerClass | None:
    """Return the class that transformers takes for a folder, or None if it takes all from tokenizer.json."""
    if family in WITHOUT_CLASS:
        return None
    name = settings.get("tokenizer_class", str, None)
    if name is None or family == "qwen2":  # many files of the family qwen2 name another class by mistake
        return CLASSES.get(OF_FAMILY.get(family, ""))
    return CLASSES.get(name.removesuffix("Fast"))
