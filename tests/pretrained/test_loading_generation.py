"""Language models of folders: where a text ends, and conversations by chat templates."""

import json

import numpy as np
import pytest
from family_models import GPT_SIZES, random_model
from refused import refused

pytest.importorskip("tokenizers")
from tokenizer_folders import END, bert, qwen2

import npformer
from npformer.cli.main import main
from npformer.generation import TextStream, sample_ids
from npformer.interop import export_folder
from npformer.interop.tokenizers import load_tokenizer
from npformer.models.gpt import GPTConfig

TEXT = "The king has"
CHAT = [{"role": "system", "content": " Be brief."}, {"role": "user", "content": 'Is "ß" a\nletter?'}]
TEMPLATE = """{% for message in messages %}
{{ '<|im_start|>' + message['role'] }}
{{ message.content | trim }}<|im_end|>
{%- if loop.last %}{% continue %}{% endif %}

{% endfor %}
{% if add_generation_prompt %}
<|im_start|>assistant {{ messages | tojson }}{{ eos_token }}
{% endif %}"""


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a random GPT of seven special tokens and subwords."""
    tokenizer = qwen2(tmp_path / "tokenizer")
    config = GPTConfig(**GPT_SIZES | {"vocab_size": 600, "context": 300, "tied": False})
    folder = export_folder(random_model(config), tmp_path / "model")
    for name in ("tokenizer.json",):
        (folder / name).write_bytes((tokenizer / name).read_bytes())
    tokens = {"eos_token": END, "tokenizer_class": "Qwen2Tokenizer"}
    tokens["extra_special_tokens"] = ["<|im_start|>", "<|im_end|>"]
    (folder / "tokenizer_config.json").write_text(json.dumps(tokens))
    return folder


def continued(loaded, text, n_tokens):
    """Return the ids of a greedy continuation, which does not end."""
    prompt = loaded.tokenizer.encode(text).ids
    return np.concatenate(list(sample_ids(loaded.model, [prompt], n_tokens))).tolist()


def test_a_text_ends_with_the_tokens_of_the_folder(folder):
    loaded = npformer.load(folder)
    assert loaded.end_ids == frozenset()
    ids = continued(loaded, TEXT, 30)
    whole = loaded.generate(TEXT, 30)
    place = next(n for n in range(3, 30) if ids[n] not in ids[:n])
    for written in (ids[place], [599, ids[place]]):
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": written}))
        loaded = npformer.load(folder)
        assert loaded.generate(TEXT, 30) == TEXT + loaded.tokenizer.decode(ids[:place])
        assert len(loaded.generate([TEXT, "No"], 30)) == 2
    assert whole.startswith(loaded.generate(TEXT, 30).removesuffix("\ufffd"))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": "end"}))
    with refused("eos_token_id is 'end' in .*: it must be an id or a list of ids"):
        npformer.load(folder).generate(TEXT, 3)


def test_a_stop_string_may_be_a_special_token(folder, monkeypatch):
    loaded = npformer.load(folder)
    wanted = [*loaded.tokenizer.plain_ids(" gone"), *loaded.tokenizer.plain_ids("<|im_end|>")]
    wanted += loaded.tokenizer.plain_ids(" away")
    monkeypatch.setattr(
        "npformer.pretrained.loaded.sample_ids", lambda *_, **__: iter(np.array(wanted)[:, None])
    )
    assert loaded.generate(TEXT, 9) == f"{TEXT} gone away"
    assert loaded.generate(TEXT, 9, stop="<|im_end|>") == f"{TEXT} gone"
    assert loaded.generate(TEXT, 9, stop=["e<|im_end|>"]) == f"{TEXT} gon"


def test_the_space_after_a_special_token_of_word_pieces(tmp_path):
    """Also where the prompt ends with one, which has no text."""
    tokenizer = load_tokenizer(bert(tmp_path / "bert"), "bert")
    ids = [tokenizer.encode(word).ids for word in ("king", "has")]  # [CLS] and [SEP] around each word
    stream = TextStream(tokenizer, ids[0])
    assert "".join([*map(stream.add, [*ids[1], *ids[0]]), stream.finish()]) == " has king"


def test_a_conversation(folder, capsys):
    pytest.importorskip("jinja2")
    with refused("has no chat template"):
        npformer.load(folder).generate(chat=CHAT)
    text = (
        '<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nIs "ß" a\nletter?<|im_end|>'
        f"<|im_start|>assistant {json.dumps(CHAT, ensure_ascii=False)}{END}\n"
    )
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    loaded = npformer.load(folder)
    for template in (
        TEMPLATE,
        [{"name": "other", "template": "x"}, {"name": "default", "template": TEMPLATE}],
    ):
        (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"chat_template": template}))
        assert text + loaded.generate(chat=CHAT, n_tokens=5) == loaded.generate(text, 5)
    (folder / "chat_template.jinja").write_text("{{ raise_exception('only ' ~ messages[0].role) }}")
    with refused(r"refuses these messages \(only system\): change them"):
        loaded.generate(chat=CHAT)
    (folder / "chat_template.jinja").write_text("{{ ''.__class__.__mro__[1].__subclasses__() }}")
    with refused("refuses these messages"):  # the sandbox
        loaded.generate(chat=CHAT)
    for chat, sentence in (
        ("Hello", "chat is 'Hello': give a list of messages"),
        ([{"role": "user"}], "a message is "),
        ([], "give a list of messages"),
    ):
        with refused(sentence):
            loaded.generate(chat=chat)
    with refused("a text and a chat were given"):
        loaded.generate(TEXT, chat=CHAT)
    (folder / "chat_template.jinja").write_text("{{ messages[0].content }}")
    command = ["generate", "--model", str(folder), "--greedy", "--tokens", "5", TEXT]
    assert main([*command, "--chat"]) == 0
    answer = capsys.readouterr().out
    assert main(command) == 0
    assert TEXT + answer == capsys.readouterr().out


@pytest.mark.torch
def test_the_text_of_a_conversation_is_that_of_transformers(folder):
    pytest.importorskip("jinja2")
    transformers = pytest.importorskip("transformers")
    from npformer.interop.chat_template import chat_text

    (folder / "chat_template.jinja").write_text(TEMPLATE)
    oracle = transformers.AutoTokenizer.from_pretrained(folder)
    text = oracle.apply_chat_template(CHAT, tokenize=False, add_generation_prompt=True)
    assert chat_text(folder, CHAT) == text
    ids = oracle.apply_chat_template(CHAT, add_generation_prompt=True, return_dict=False)
    assert npformer.load(folder).tokenizer.plain_ids(text) == ids
