"""Tokenizers of Hugging Face folders: text to ids and back, with the pieces of the reader's own text.

The ids and the decoded text are those of `transformers.AutoTokenizer`. The library `tokenizers` does the
work (`pip install 'npformer[hf]'`), and `sentencepiece` does it for Marian.
"""

import os
from pathlib import Path

from npformer.interop.library_tokenizer import LibraryTokenizer
from npformer.interop.marian_tokenizer import MarianTokenizer


def load_tokenizer(folder: str | os.PathLike[str], family: str) -> LibraryTokenizer | MarianTokenizer:
    """Load the tokenizer of a Hugging Face folder.

    The file is tokenizer.json; for Marian, the files are source.spm, target.spm and vocab.json.
    tokenizer_config.json may hold settings.

    Args:
        folder: The folder.
        family: The `model_type` of config.json, such as "gpt2" or "marian".

    Raises:
        UserError: If a library is not installed, or a file is missing or damaged.
    """
    if family == "marian":
        return MarianTokenizer.from_folder(Path(folder))
    return LibraryTokenizer.from_folder(Path(folder), family)
