"""What a command refuses: each mistake is one sentence with status 2, and no file is written or changed.

Mistakes in the form of options are in test_options.py, and those that need a special model or folder are in
the file of their command.
"""

import json
import shlex

import command_fuzz
import pytest
import toy_pretrained
from word_translator import word_checkpoint

from npformer.cli.main import COMMANDS, main
from npformer.storage.checkpoint import save_checkpoint

OWN = """
def half(x):
    return x / 2, None

def lonely(x):
    return x, None

class Needy:
    def __init__(self, size):
        self.size = size

class Raising:
    def forward(self, x):
        return 1 / 0
    def backward(self, dy, cache):
        return dy
"""
FILES = {
    "mistakes.py": OWN,
    "blank.py": "import math\n",
    "one.txt": "aaaaaaaaaa" * 100,
    "letter.txt": "t",
    "zebra.txt": "the zebra",
    "long.en": "the\n" + "cat " * 200 + "\nthe\n",
    "lower.de": "ein abc\n",
    "list.json": "[1]",
    "half.json": '{"title": "English to German"}',
    "proud.json": json.dumps(toy_pretrained.FIELDS | {"scores": [{"bleu": 99}]}),
    "exercises/empty/note.txt": "",
    "newer/.progress.json": '{"format": 2}',
}
ON_A_GPU = (
    *(
        "train --task copy",
        "translate x --model en-de",
        "score train.en train.fr --model en-de",
        "bench",
        "tour",
    ),
    *("generate x --model en-de", "fill x --model en-de", "explore x --model en-de", "gradcheck softmax"),
)
EXPORT = "--export runs/toy --out x.safetensors"

# command lines, and words of the sentence that each gets
MISTAKES = [
    ("attention 'the cat' --model runs/tiny --layer 2", "--layer is 2: there is 1 layer, counted from 0"),
    ("attention 'the cat' --model runs/tiny --out empty/below", "empty/below cannot be written"),
    ("attention 'the cat' --model runs/tiny --kind encoder --word zebra", "'zebra' is not a query here"),
    (f"attention '{'cat ' * 21}' --model runs/tiny", "22 tokens, its end included, and the model's limit is"),
    ("attention 'the cat' --model runs/text --kind cross", "this model has no encoder-decoder attention: it"),
    ("bench --only tinny", "unknown setup 'tinny': did you mean tiny?"),
    ("bench --workers 17", "--workers is 17, and "),
    ("bench --json no/such/folder.json", "no/such/folder.json cannot be written (there is no folder no/such"),
    ("bench --json .", ". cannot be written (it is a folder): give a file"),
    ("bench --curves curves.jpg", "cannot save a picture as 'curves.jpg': end the name in .png"),
    ("lens 'the dog' --model no/such --out x.jpg", "cannot save a picture as 'x.jpg'"),
    ("patch 'the dog' 'the cat' --model no/such --out x.jpg", "cannot save a picture as 'x.jpg'"),
    ("bugs start layernorm", "did you mean layer-norm?"),
    ("bugs start 44", "they have the numbers 1 to"),
    ("bugs start", "npformer bugs start 1"),
    ("bugs start 1 --dir empty", "cannot be written"),
    ("bugs check", "nothing is started in bugs: begin with npformer bugs start 1"),
    ("bugs check 3", "npformer bugs start 3 writes it"),
    ("bugs hint", "npformer bugs hint 1"),
    ("bugs list 3", "list shows all bugs"),
    ("build 'the dog' --dir new", "there is no trained Transformer in new: npformer build --train --dir new"),
    ("build --train --dir new", "no part is yours yet, so there is nothing to train: npformer build --dir n"),
    ("build --dir empty", "empty is a file: give the folder of your exercises"),
    ("class export nbgrader", "export needs the layout and a folder"),
    ("class export nbgraderr x", "did you mean nbgrader"),
    ("class export nbgrader x --name ../y", "--name is '../y'"),
    ("class export nbgrader empty", "cannot be written"),
    ("class grade", "grade needs the folder"),
    ("class grade folder", "folder has no submissions: give the folder with one folder or file for each"),
    ("class grade exercises --out exercises/feedback", "is in the folder of the submissions"),
    ("class grade exercises --csv gone/x.csv", "there is no folder"),
    ("class grade exercises --out empty/x", "empty"),
    ("class mistakes --write gone.md", "cannot be read"),
    ("curves folder", "the log folder/log.jsonl cannot be read"),
    ("curves bad-log", "line 1 of bad-log/log.jsonl is damaged"),
    ("data", "no corpus is named: give npformer data multi30k"),
    ("data multi3k", "unknown corpus 'multi3k': did you mean multi30k?"),
    ("data multi30k --languages en,nl", "language is 'nl': choose one of en, de, fr"),
    ("data multi30k --from nowhere", "there is no file nowhere/raw/train.en.gz: give a folder that"),
    ("data multi30k --from . --folder new", "there is no file raw/train.en.gz"),
    ("data multi30k --base-url example.org --folder folder", "'example.org' is not an address"),
    ("data multi30k --from copy --folder empty", "cannot be"),
    ("exercise start softmax-backwards", "did you mean softmax-backward?"),
    ("exercise start", "npformer exercise start NAME"),
    ("exercise start pad --dir newer", "up to 1: install a newer npformer, or move the file away"),
    ("exercise start pad --dir empty", "cannot be written"),
    ("exercise check pad", "npformer exercise start pad"),
    ("exercise check --dir new", "nothing is started in new: begin with npformer exercise start "),
    ("bugs check --dir 'a b'", "begin with npformer bugs start 1 --dir 'a b'"),
    ("exercise check pad --png a.xyz", "a.xyz"),
    ("exercise check --all --png a.png", "--png draws one picture, and 3 files are checked"),
    ("exercise hint --dir new", "npformer exercise hint NAME"),
    ("exercise solution", "npformer exercise solution NAME"),
    ("exercise list 77", "chapter 77 has no exercises: list takes the number of a chapter"),
    ("exercise list softmax", "'softmax' is not a chapter: list takes"),
    ("experiment ablations", "ablation"),
    ("experiment ablation --out folder", "it is a folder"),
    ("experiment ablation --out list.json", "is a list and not a JSON object"),
    ("explore 'the dog' --model runs/words --target 'le chein'", "does not know 'chein' of the translation"),
    (f"explore '{'the ' * 50}' --model runs/words", "the sentence has 51 tokens, its end included, and a pa"),
    ("explore ' ' --model runs/words", "the sentence ' ' is empty: write at least one word"),
    ("explore 'the dog' --model runs/none", "there is no model runs/none: give the folder of a run"),
    ("explore 'the dog' --model runs/words --out runs", "runs cannot be written (it is a folder): give anot"),
    ("explore 'the cat sees the cat' --model runs/text", "16: give a shorter one"),
    ("explore 'the cat' --target a --model runs/text", "a language model reads one text and predicts"),
    ("figures F99", "unknown figure 'F99': did you mean F"),
    ("figures nonsense", "unknown figure 'nonsense': npformer figures --list prints all names"),
    ("figures F29 --model nowhere --out folder", "there is no checkpoint nowhere/last.safetensors"),
    (
        "figures F23 F44 --model runs/x",
        "--model has no effect on F23 F44, because only F07 F29 F30 F51 F52 show",
    ),
    ("fill 'the cat' --model runs/sentences", "text 1: 'the cat' has no [MASK]: write it in place of each w"),
    ("fill [MASK] 'the [MASK] yak' --model runs/sentences", "text 2: 'the [MASK] yak' has 1 word that the m"),
    ("fill '  ' --model runs/sentences", "text 1: the text '  ' is empty: write a sentence with [MASK] in p"),
    (f"fill '{'[MASK] ' * 17}' --model runs/sentences", "text 1: the text has 17 tokens, and the model read"),
    ("fill [MASK] --answers 101", "--answers is '101': give a whole number, 1 or more, at most 100"),
    ("fill [MASK] --model no", "there is no run no: train a masked language model with npformer train"),
    ("fill [MASK] --model toy.safetensors", "toy.safetensors is a translator, which cannot fill gaps: use i"),
    ("fill [MASK] --model runs/text", "runs/text is a language model, which cannot fill gaps: use it with n"),
    ("generate", 'give a prompt, as npformer generate "ROMEO:", or --perplexity with a file'),
    ("generate the tée --model runs/text", "prompt 2: the text has the character 'é', which the model has n"),
    (f"generate '{'the cat ' * 3}' --model runs/text", "prompt 1 has 24 tokens, and the model reads 16 at m"),
    ("generate --perplexity letter.txt --model runs/text", "the text has a single token, and nothing follow"),
    ("generate --perplexity empty --model runs/text", "is empty: give a file with text"),
    ("generate the --model toy.safetensors", "is a translator, which cannot continue a text: use it with np"),
    ("generate the --model runs/sentences", "is a masked language model, which cannot continue a text: use"),
    ("gradcheck nonsense", "no component is called 'nonsense': npformer gradcheck --list prints all names"),
    ("gradcheck sofmax", "no component is called 'sofmax': did you mean softmax? npformer gradcheck --list"),
    ("gradcheck own.py", "names a file, and no layer or function in it"),
    ("gradcheck own.py:double", "give --shape"),
    ("gradcheck own.py:double --shape 2,x", "--shape is '2,x': give the sizes of its axes"),
    ("gradcheck own.py:doubel --shape 2", "did you mean double?"),
    ("gradcheck blank.py:double --shape 2", "blank.py has no double: define it there"),
    ("gradcheck mistakes.py:lonely --shape 2", "no lonely_backward"),
    ("gradcheck mistakes.py:Needy --shape 2", "cannot be made without arguments"),
    ("gradcheck mistakes.py:Raising --shape 2", "ZeroDivisionError in line 14"),
    ("gradcheck gone.py:double --shape 2", "there is no file gone.py"),
    ("gradcheck bad.py:double --shape 2", "bad.py could not be run: SyntaxError"),
    ("index --write own.py", "own.py exists and is another page: give another FILE, or remove it"),
    ("gradcheck --model runs/text", "--model needs one sentence, and 0 were given"),
    ("inspect damaged", "damaged/last.safetensors"),
    ("lesson 3 --html solution.py", "solution.py cannot be written (its name does not end in .html or .htm"),
    ("explore 'the cat' --model runs/tiny --out solution.py", "its name does not end in .html or .htm"),
    ("lesson 3 --html no/such/x.html", "no/such/x.html cannot be written (there is no folder no/such): give"),
    ("lessons --route engineer", "--route is 'engineer': did you mean engineers?"),
    ("masks '  '", "the sentence is empty"),
    ("masks je --cross ' '", "the sentence of --cross is empty"),
    ("masks je --layer 2", "--layer is 2, and the model has 2: give 0 to 1"),
    ("masks je --causal --layer 1", "--causal takes --layer 0"),
    ("masks je --model runs/sentences", "is a masked language model, which cannot translate: use it"),
    (f"masks '{'je ' * 150}'", "a picture of 150 × 150 cells has no room"),
    ("masks je --out empty/below", "empty/below cannot be written"),
    ("masks cat --pad 100 --model runs/tiny", "the model's limit is"),
    ("pretrained en-dee", "did you mean en-de?"),
    ("pretrained --export runs/toy --card card.json", "the card card.json exists and is left as it is"),
    ("pretrained --export nowhere --out x.safetensors --card card.json", "there is no model nowhere"),
    ("pretrained --export runs/toy --out x.bin --card card.json", "does not end in"),
    (f"pretrained {EXPORT} --card no/card.json", "no/card.json cannot be written"),
    (f"pretrained {EXPORT} --card list.json", "the model card is a list and not a JSON object"),
    (f"pretrained {EXPORT} --card half.json", "half.json: the model card has no entry 'data'"),
    (f"pretrained {EXPORT} --card proud.json", "proud.json has scores"),
    (f"pretrained {EXPORT} --card template.json", "has TO WRITE: in data"),
    (f"pretrained {EXPORT} --card card.json --scores half.json", "half.json: the score has no entry 'source"),
    (f"pretrained {EXPORT} --card card.json --casing lower.de", "no capitals to learn from"),
    ("pretrained --export runs/sentences --out x.safetensors --card card.json", "a masked language model, w"),
    ("pretrained --export runs/tiny --layout gpt2 --out new", "a Transformer cannot be written as gpt2: giv"),
    ("pretrained --export runs/sentences --layout bert --out folder", "folder is not empty"),
    ("saliency 'the cat' --model runs/text --target dog", "the target 'dog' is 3 tokens of this model"),
    ("saliency 'the cat' --model runs/sentences", "'the cat' has no [MASK]: write it in place of a word"),
    ("saliency a --model runs/text --points 7", "--points is '7': give a whole number, 8 or more"),
    ("saliency a --model no/such --out a.txt", "cannot save a picture as 'a.txt'"),
    ("score train.en short.fr --model runs/tiny", "train.en has 12 lines but short.fr has 1"),
    ("score train.en train.fr --out link", "--out link is a file that is read: give another one"),
    ("score train.en gone --model runs/tiny", "there is no file gone"),
    ("score train.en train.fr --model runs/tiny --known-words gone", "there is no file gone"),
    ("score train.en train.fr --model runs/tiny --beam 1 --length-penalty 1", "--length-penalty has no effe"),
    ("score train.en train.fr --model runs/tiny --out no/found", "there is no folder no"),
    ("score train.en train.fr --model runs/tiny --out folder", "folder cannot be written (it is a folder)"),
    ("score long.en long.en --model runs/tiny", "line 2 has"),
    ("score train.en train.fr --model en-ed", "did you mean en-de?"),
    ("score train.en train.fr --model en-de --last", "en-de is not the folder of a run"),
    ("site .", "is no file of a site of npformer: give another folder"),
    ("site empty", "empty cannot be written (it is a file): give another folder"),
    ("site new --only 99", "unknown lesson '99'"),
    ("site new --only 3 --model none", "none"),
    ("translate 'the cat' ' ' --model runs/tiny", "line 2 is empty"),
    ("translate 'the cat' --model runs/tiny --n-best 5", "--n-best is 5, and a beam of 4 finds 4 at most"),
    ("translate 'the cat' --model runs/tiny --beam 1 --n-best 2", "--n-best is 2, and a beam of 1 finds 1"),
    ("translate 'the cat' --model nowhere", "there is no model nowhere"),
    ("translate 'the cat' --model runs/text", "runs/text is a language model, which cannot translate"),
    ("train train.en short.fr", "train.en has 12 lines but short.fr has 1"),
    ("train train.en latin.txt", "latin.txt"),
    ("train train.en", "1 file was given"),
    ("train train.en train.fr --run runs/tiny", "--resume"),
    ("train train.en train.fr --start-from nowhere", "there is no model nowhere"),
    ("train train.en train.fr --start-from en-de", "the source vocabulary of en-de is not that of the data"),
    ("train --resume runs/tiny --start-from runs/tiny", "--start-from has no effect with --resume"),
    ("train --task copy --run empty", "empty cannot be written (Not a directory): choose another folder for"),
    ("train --task copy --architecture paper-bas", "did you mean paper-base?"),
    ("train --preset smal", "small"),
    *((f"{command} --backend cupy", "needs CuPy and a GPU that answers") for command in ON_A_GPU),
    ("train --preset multi30k-en-de --data no", "there is no file no/tok/train.lc.norm.tok.en: download the"),
    ("train --resume nowhere", "nowhere"),
    ("train --resume damaged", "damaged/last.safetensors"),
    ("train --resume runs/tiny --steps 1", "has made 2 steps already"),
    ("train train.en train.fr --subwords 5000", "the largest size possible is"),
    ("train train.en train.fr --subwords 5", "the smallest size is"),
    # a language model on one text
    ("train --text one.txt", "one.txt has only the character 'a': give a text with at least two"),
    ("train --text short.fr", "short.fr has 2 tokens for training, and the model's context is 128: give a l"),
    ("train --text latin.txt", "latin.txt is not UTF-8 text at line 1 (byte 0xe9): save it as UTF-8, or"),
    ("train --text .", ". is a folder: give a text file in it"),
    ("train --text train.en --tokens subwords --vocab-size 3", "vocab_size is 3, fewer than the characters"),
    ("train --text train.en --architecture rnn", "the model reads sentence pairs and the dataset"),
    ("train --task copy --architecture gpt2", "the model reads text and the dataset has sentence pairs: cho"),
    ("train --text train.en --set bleu_every=5", "--set bleu_every has an effect only with sentenc"),
    ("train --text train.en --set pad_id=0", "pad_id is 0, and the windows of a text have no padd"),
    ("train --text train.en --set vocab_size=5", "vocab_size is 5, but train.en has 13 different"),
    ("train --text train.en --architecture gpt2 --set rotary_base=5", "rotary_base has an effect only with"),
    # settings of --set
    ("train --task copy --set d_modell=10", "there is no setting d_modell: did you mean d_model?"),
    ("train --task copy --set x=10", "there is no setting x: a model has"),
    ("train --task copy --set d_model", "write NAME=VALUE"),
    ("train --task copy --set norm=before", "choose one of post, pre"),
    ("train --task copy --set d_model=10 --set n_heads=4", "not divisible by n_heads 4"),
    ("train --task copy --set factor=2", "--set factor has an effect only with schedule warmup, and schedul"),
    ("train --task copy --set schedule=constant --set warmup_steps=3", "warmup_steps has an effect only wit"),
    ("train --task copy --set schedule=warmup --set learning_rate=1", "learning_rate has an effect only wit"),
    ("train --task copy --set schedule=constant --set min_learning_rate=1", "min_learning_rate has an effec"),
    ("train --task copy --set max_distance=3", "max_distance has an effect only with positions relative"),
    ("train --task copy --set bleu_sentences=3", "bleu_sentences has an effect only with bleu_every: add --"),
    ("train --task copy --set average_every=3", "average_every has an effect only with average_last"),
    ("train --task copy --set seed=3 --seed=3", "--seed and --set seed were both given: leave one of them o"),
    ("train --task copy --set batch_size=3 --batch-size=3", "--batch-size and --set batch_size were both gi"),
    ("train --task copy --set batch_size=3 --set batch_tokens=100", "both batch_size and batch_tokens are g"),
    ("train --task copy --set d_model=9223372036854775808", "--set d_model=9223372036854775808 is too large"),
    ("train --task copy --set betas=(0.9,1e999)", "--set betas=(0.9,1e999) is too large"),
    ("train --task copy --set d_model=1_000", "d_model is '1_000': it must be a whole number"),
    (f"train --task copy --set d_model={'(' * 150}", "it must be a whole number"),
    (f"train --task copy --set d_model={'1' * 201}", "the value of --set 'd_model' has 201 characters"),
    ("train --task copy --set betas=5", "betas is 5: give two numbers"),
    ("train --task copy --set d_model={[1]}", "d_model is '{[1]}': it must be a whole number"),
]
# the beginnings of command lines that read a model
READERS = ["translate x", "score train.en train.fr", "attention x", "explore x", "saliency x", "masks x"]
READERS += ["figures F29 --out folder", "fill [MASK]", "generate x", "gradcheck x"]

# these print something before they find a mistake
BEGIN = ("data", "figures", "lesson", "saliency", "site", "train")
LINES = [*MISTAKES, *((f"{line} --model damaged", "damaged/last.safetensors") for line in READERS)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the files and the runs that the command lines name, and with what is in it."""
    path = tmp_path_factory.mktemp("refusals")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        command_fuzz.prepare(path)
    for name, text in FILES.items():
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text(text, encoding="utf-8")
    (path / "runs/words").mkdir()
    save_checkpoint(word_checkpoint(), path / "runs/words/last.safetensors")
    return path, command_fuzz.contents(path)


@pytest.mark.parametrize(("line", "words"), LINES, ids=[line[:60] for line, _ in LINES])
def test_a_mistake_is_refused_in_one_sentence_and_changes_nothing(folder, line, words, monkeypatch, capsys):
    path, before = folder
    monkeypatch.chdir(path)
    assert main(shlex.split(line)) == 2
    printed = capsys.readouterr()
    assert printed.out == "" or line.split()[0] in BEGIN
    assert printed.err.startswith("npformer: ")
    assert printed.err.count("\n") == 1
    assert words in printed.err
    assert command_fuzz.contents(path) == before


@pytest.mark.parametrize("command", COMMANDS)
def test_an_empty_argument_is_not_taken_for_one_that_was_not_given(command, capsys):
    """Such as the model that was trained last, with --model "$run" and an empty variable of the shell."""
    for arguments, before in ([""], command), (["--model", ""], "--model"):
        assert main([command, *arguments]) == 2
        sentence = f"the argument after {before} is empty: give a name or a text, or leave it out"
        assert capsys.readouterr().err == f"npformer: {sentence}\n"
