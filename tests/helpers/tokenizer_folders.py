"""Folders with small tokenizers of every kind, trained on Shakespeare and some words of other languages."""

import gzip
import io
import json
import shutil
import warnings

import sentencepiece
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers, trainers
from unicode_texts import ASIAN, COMPATIBLE, EMOJI, RIGHT_TO_LEFT, WORDS

from npformer.data.text import TINY_SHAKESPEARE
from npformer.errors import UserError
from npformer.interop.tokenizer_classes import QWEN2_PATTERN
from npformer.interop.tokenizers import load_tokenizer

END = "<|endoftext|>"
# what texts should contain besides words: special tokens, and Marian's codes of target languages
STRINGS = ["[SEP]", "[MASK]", "[UNK]", "</s>", "<s>", "<unk>", "<pad>", END, "<|im_start|>", "<new>"]
STRINGS += [">>de<<", ">>fr<< ", ">>none<<x"]


def lines():
    """Return the lines that the tokenizers are trained on."""
    with gzip.open(TINY_SHAKESPEARE, "rt", encoding="utf-8") as file:
        verses = [line for line in file.read(40_000).splitlines() if line]
    return verses + [" ".join([*WORDS, *ASIAN, *RIGHT_TO_LEFT]), " ".join([*EMOJI, *COMPATIBLE])] * 10


def write_json(path, content):
    """Write a JSON file."""
    path.write_text(json.dumps(content), encoding="utf-8")


def change_json(path, **entries):
    """Change entries of a JSON file that holds an object."""
    write_json(path, {**json.loads(path.read_text(encoding="utf-8")), **entries})


def gpt2(folder):
    """Write the tokenizer.json of a GPT-2."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return _save(_train_bytes(tokenizer, [END]), folder, "gpt2")


def qwen2(folder):
    """Write the tokenizer.json of a Qwen2."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    pattern = tokenizers.Regex(QWEN2_PATTERN)
    words = [pre_tokenizers.Split(pattern, "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(words)
    return _save(_train_bytes(tokenizer, [END, "<|im_start|>", "<|im_end|>"]), folder, "qwen2")


def bert(folder, *, lowercase=True, family="bert"):
    """Write the tokenizer.json of a BERT or DistilBERT."""
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    settings = {"vocab_size": 600, "limit_alphabet": 120}
    return _save(_train(tokenizer, trainers.WordPieceTrainer, special, **settings), folder, family)


def marian(folder):
    """Write source.spm, target.spm and vocab.json of Marian; the vocabulary lacks some of the pieces."""
    folder.mkdir()
    pieces = {"</s>": None, "<unk>": None}
    for name, model_type in (("source.spm", "unigram"), ("target.spm", "bpe")):
        data = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines()),
            model_writer=data,
            model_type=model_type,
            vocab_size=450,
            character_coverage=0.995,
            normalization_rule_name="nmt_nfkc",
            minloglevel=2,
        )
        (folder / name).write_bytes(data.getvalue())
        model = sentencepiece.SentencePieceProcessor(model_proto=data.getvalue())
        pieces |= {model.id_to_piece(index): None for index in range(3, 450) if index % 9}
    pieces |= {">>de<<": None, ">>fr<<": None, "<pad>": None}
    write_json(folder / "vocab.json", {piece: index for index, piece in enumerate(pieces)})
    write_json(folder / "config.json", {"model_type": "marian"})
    return folder


def _train_bytes(tokenizer, special):
    settings = {"vocab_size": 600, "initial_alphabet": pre_tokenizers.ByteLevel.alphabet()}
    return _train(tokenizer, trainers.BpeTrainer, special, **settings)


def _train(tokenizer, trainer, special, **settings):
    """Train a tokenizer on `lines` and return its model."""
    trainer = trainer(**settings, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(lines(), trainer)
    return tokenizer.model


def _save_by_transformers(kind, folder, family, *model, **settings):
    """Write the folder that transformers writes for a tokenizer of a class."""
    import transformers

    getattr(transformers, kind)(*model, **settings).save_pretrained(folder)
    write_json(folder / "config.json", {"model_type": family})
    return folder


def _vocabulary_and_merges(model):
    model = json.loads(tokenizers.Tokenizer(model).to_str())["model"]
    return model["vocab"], [tuple(pair) for pair in model["merges"]]


def _save(model, folder, family):
    """Write the tokenizer.json of a model alone, and a configuration that names its family.

    The class of the family says how a text is split into words, and which special tokens there are.
    """
    folder.mkdir()
    tokenizers.Tokenizer(model).save(str(folder / "tokenizer.json"))
    write_json(folder / "config.json", {"model_type": family})
    return folder


def llama(folder, *, gemma=False):
    """Write the folder that transformers writes for Llama or Gemma: rare characters are tokens of bytes."""
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"] if gemma else ["<unk>", "<s>", "</s>"]
    special = [*special, *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer = tokenizers.Tokenizer(models.BPE(byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    model = _train(tokenizer, trainers.BpeTrainer, special, vocab_size=800, limit_alphabet=80)
    kind, family = ("GemmaTokenizer", "gemma") if gemma else ("LlamaTokenizer", "llama")
    return _save_by_transformers(kind, folder, family, *_vocabulary_and_merges(model), add_bos_token=True)


def roberta(folder):
    """Write the folder that transformers writes for RoBERTa, which splits words into bytes as GPT-2."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    model = _train_bytes(tokenizer, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    return _save_by_transformers("RobertaTokenizer", folder, "roberta", *_vocabulary_and_merges(model))


UNIGRAM = {  # the class in transformers of each family with a unigram model
    "xlm-roberta": "XLMRobertaTokenizer",
    "camembert": "CamembertTokenizer",
    "mbart": "MBartTokenizer",
    "mbart50": "MBart50Tokenizer",
    "t5": "T5Tokenizer",
}


def unigram(folder, family):
    """Write the folder that transformers writes for a family in UNIGRAM."""
    special = ["<pad>", "</s>", "<unk>"] if family == "t5" else ["<s>", "<pad>", "</s>", "<unk>"]
    tokenizer = tokenizers.Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    _train(tokenizer, trainers.UnigramTrainer, special, vocab_size=500, unk_token="<unk>")
    vocab = [tuple(entry) for entry in json.loads(tokenizer.to_str())["model"]["vocab"]]
    vocab += [] if family == "t5" else [("<mask>", 0.0)]
    options = {"src_lang": "de_DE"} if family.startswith("mbart") else {}
    model_type = family.removesuffix("50")
    return _save_by_transformers(UNIGRAM[family], folder, model_type, vocab=vocab, **options)


def damaged(data, rng):
    """Return the data truncated, with other bytes, or without some."""
    place, length = rng.randrange(len(data)), rng.choice([1, 5, 40])
    before, after = data[:place], data[place + length :]
    inserted = [b"", b"\xff" * length, rng.randbytes(length), bytes(rng.choices(b'0"{}[]:,-', k=length))]
    return rng.choice([before, *(before + each + after for each in inserted)])


def is_refused(folder, family):
    """Return whether the tokenizer is refused, or refuses a text, with a message of one line."""
    try:
        tokenizer = load_tokenizer(folder, family)
        tokenizer.decode(tokenizer.encode("The [MASK] man ½ €").ids)
    except UserError as error:
        return "\n" not in str(error)
    return False


def load_oracle(folder):
    """Return transformers' tokenizer of a folder."""
    import transformers

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Marian recommends sacremoses
        return transformers.AutoTokenizer.from_pretrained(folder)


def resaved(source, folder, **settings):
    """Write the folder that transformers writes for a tokenizer with other settings."""
    shutil.copytree(source, folder)
    if settings:
        write_json(folder / "tokenizer_config.json", settings)
    tokenizer = load_oracle(folder)
    shutil.rmtree(folder)
    tokenizer.save_pretrained(folder)
    shutil.copy(source / "config.json", folder)
    return folder


def copied(source, folder, settings=None, **changes):
    """Copy a folder.

    Args:
        source: The folder to copy.
        folder: The copy.
        settings: Changes of tokenizer_config.json.
        changes: Changes of tokenizer.json.
    """
    shutil.copytree(source, folder)
    path = folder / "tokenizer_config.json"
    if settings and not path.exists():
        write_json(path, {})
    if settings:
        change_json(path, **settings)
    if changes:
        change_json(folder / "tokenizer.json", **changes)
    return folder


# how version 4 of transformers wrote the tokenizer.json of Llama 2
VERSION_4 = {
    "pre_tokenizer": None,
    "normalizer": {
        "type": "Sequence",
        "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        ],
    },
}
NEW_TOKEN = {"content": "<new>", "lstrip": True, "rstrip": False, "normalized": True, "single_word": False}


def all_folders(root):
    """Write a folder for each kind of tokenizer.

    Returns:
        A dict from the kind to its family and its folder.
    """
    plain_gpt2, plain_bert = gpt2(root / "gpt2"), bert(root / "bert")
    plain_qwen2, cased = qwen2(root / "qwen2"), bert(root / "bert cased plain", lowercase=False)
    plain_marian, llama_2 = marian(root / "marian"), llama(root / "llama")
    new_gpt2 = resaved(plain_gpt2, root / "gpt2 resaved")
    new_bert = resaved(plain_bert, root / "bert resaved")
    byte_level = {"tokenizer_class": "LlamaTokenizerFast", "bos_token": END}
    instructions = ["<|im_start|>", "<|im_end|>"]
    added = {"added_tokens_decoder": {"600": {**NEW_TOKEN, "special": False}}}
    folders = {
        "gpt2": new_gpt2,
        "gpt2, no settings": plain_gpt2,
        "gpt2, a space first": resaved(plain_gpt2, root / "gpt2 space", add_prefix_space=True),
        "gpt2, an added token": copied(new_gpt2, root / "gpt2 added", added),
        "llama": llama_2,
        "llama of version 4": copied(llama_2, root / "llama 4", **VERSION_4),
        "llama of version 4, legacy": copied(llama_2, root / "llama legacy", {"legacy": True}, **VERSION_4),
        "llama, no class": copied(llama_2, root / "no class", {"tokenizer_class": None}, **VERSION_4),
        "llama 3": copied(new_gpt2, root / "llama 3", byte_level),
        "qwen2": resaved(plain_qwen2, root / "qwen2 resaved", extra_special_tokens=instructions),
        "bert": new_bert,
        "bert, no settings": plain_bert,
        "bert, cleaned": copied(new_bert, root / "bert cleaned", {"clean_up_tokenization_spaces": True}),
        "bert, cased": resaved(cased, root / "bert cased", do_lower_case=False),
        "bert, accents": copied(new_bert, root / "bert accents", {"strip_accents": False}),
        "distilbert": resaved(bert(root / "distilbert plain", family="distilbert"), root / "distilbert"),
        "roberta": roberta(root / "roberta"),
        **{family: unigram(root / family, family) for family in UNIGRAM},
        "bart": roberta(root / "bart"),
        "marian": resaved(plain_marian, root / "marian resaved"),
        "marian, older files": plain_marian,
    }
    folders |= {
        "opt": copied(new_gpt2, root / "opt", {"add_bos_token": True, "bos_token": END}),
        "mistral": copied(llama_2, root / "mistral", **VERSION_4),
        "gemma": llama(root / "gemma", gemma=True),
        "gpt_neox": copied(plain_gpt2, root / "gpt_neox"),
        "qwen3": copied(plain_qwen2, root / "qwen3", {"tokenizer_class": "Qwen2Tokenizer"}),
        "qwen3_moe": copied(plain_qwen2, root / "qwen3_moe", {"tokenizer_class": "Qwen2Tokenizer"}),
        "mixtral": copied(llama_2, root / "mixtral", **VERSION_4),
        "olmo2": copied(new_gpt2, root / "olmo2", {"tokenizer_class": "GPT2Tokenizer"}),
        "smollm3": copied(new_gpt2, root / "smollm3", {"tokenizer_class": "PreTrainedTokenizerFast"}),
        "phi3": copied(llama_2, root / "phi3", {"legacy": False}, **VERSION_4),
    }
    families = {kind: kind.split()[0].rstrip(",").removesuffix("50") for kind in folders}
    for kind, folder in folders.items():
        write_json(folder / "config.json", {"model_type": families[kind]})
    return {kind: (families[kind], folder) for kind, folder in folders.items()}


KINDS = [
    *("gpt2", "gpt2, no settings", "gpt2, a space first", "gpt2, an added token"),
    *("llama", "llama of version 4", "llama of version 4, legacy", "llama, no class", "llama 3", "qwen2"),
    *("bert", "bert, no settings", "bert, cleaned", "bert, cased", "bert, accents", "distilbert"),
    *("roberta", "bart", *UNIGRAM, "marian", "marian, older files"),
    *("opt", "mistral", "mixtral", "phi3", "qwen3", "qwen3_moe", "olmo2", "smollm3", "gpt_neox", "gemma"),
]
