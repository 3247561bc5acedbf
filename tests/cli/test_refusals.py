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
    "one.txt": "aaaaaaaaaa" * 100,
    "letter.txt": "t",
    "zebra.txt": "the zebra",
    "long.en": "the\n" + "cat " * 200 + "\nthe\n",
    "lower.de": "ein abc\n",
    "list.json": "[1]",
    "half.json": '{"title": "English to German"}',
    "proud.json": json.dumps(toy_pretrained.FIELDS | {"scores": [{"bleu": 99}]}),
    "exercises/empty/note.txt": "",
}
EXPORT = "--export runs/toy --out x.safetensors"

# the arguments of each command, and words of the sentence
MISTAKES = {
    "attention": [
        ("'the cat' --model runs/tiny --layer 2", "--layer is 2: this model has layers 0 .. 0"),
        ("'the cat' --model runs/tiny --head 4", "--head is 4: this model has heads 0 .. 1"),
        ("'the cat' --model runs/tiny --out empty/below", "empty/below cannot be written"),
        ("'the cat' --model runs/tiny --kind encoder --word zebra", "'zebra' is not a query here"),
        (f"'{'cat ' * 21}' --model runs/tiny", "22 tokens, its end included, and the model's limit is 20"),
        ("'  ' --model runs/tiny", "is empty"),
        ("'the cat' --model nowhere", "there is no run nowhere"),
        ("'the cat' --model runs/text --kind cross", "this model has no encoder-decoder attention: it has s"),
    ],
    "bench": [
        ("--only tinny", "unknown setup 'tinny': did you mean tiny?"),
        ("--workers 17", "--workers is 17, and "),
        ("--json no/such/folder.json", "no/such/folder.json cannot be written (there is no folder no/such)"),
        ("--json .", ". cannot be written (it is a folder): give a file"),
        ("--curves curves.jpg", "--curves curves.jpg: end the picture's name in .png or .svg"),
        ("--curves no/such/curves.png", "no/such/curves.png cannot be written (there is no folder no/such)"),
    ],
    "bugs": [
        ("start layernorm", "did you mean layer-norm?"),
        ("start 44", "they have the numbers 1 to"),
        ("start", "npformer bugs start 1"),
        ("start 1 --dir empty", "cannot be written"),
        ("check", "nothing is started in bugs: begin with npformer bugs start 1"),
        ("check 3", "npformer bugs start embedding writes it"),
        ("check nothing-like-it-at-all", "npformer bugs list prints all names"),
        ("hint", "npformer bugs hint 1"),
        ("list 3", "list shows all bugs"),
    ],
    "build": [
        ("'the dog' --dir new", "there is no trained Transformer in new: npformer build --train --dir new t"),
        ("--train --dir new", "no part is yours yet, so there is nothing to train: npformer build --dir new"),
        ("--dir empty", "empty is a file: give the folder of your exercises"),
        ("'the dog' --dir empty", "empty is a file: give the folder of your exercises"),
    ],
    "class": [
        ("export nbgrader", "export needs the layout and a folder"),
        ("export nbgraderr x", "did you mean nbgrader"),
        ("export gradescope x --name y", "--name has an effect only with export nbgrader"),
        ("export nbgrader x --name ../y", "--name is '../y'"),
        ("export nbgrader x --exercise softmaxx", "softmax"),
        ("export nbgrader empty", "cannot be written"),
        ("grade", "grade needs the folder"),
        ("grade gone", "cannot be read"),
        ("grade folder", "no file in folder belongs to an exercise"),
        ("grade exercises --out exercises/feedback", "is in the folder of the submissions"),
        ("grade exercises --csv gone/x.csv", "there is no folder"),
        ("grade exercises --out empty/x", "empty"),
        ("mistakes softmax", "mistakes takes no place"),
        ("mistakes --write gone.md", "cannot be read"),
    ],
    "curves": [
        ("folder", "the log folder/log.jsonl cannot be read"),
        ("bad-log", "has no step yet"),
    ],
    "data": [
        ("", "no corpus is named: give npformer data multi30k"),
        ("multi3k", "unknown corpus 'multi3k': did you mean multi30k?"),
        ("multi30k --languages en,nl", "language is 'nl': choose one of en, de, fr"),
        ("multi30k --languages ,", "no language is given"),
        ("multi30k --from nowhere --folder folder", "there is no file nowhere/raw/train.en.gz"),
        ("multi30k --base-url example.org --folder folder", "'example.org' is not an address"),
        ("multi30k --from copy --folder empty", "cannot be"),
    ],
    "exercise": [
        ("start softmax-backwards", "did you mean softmax-backward?"),
        ("start", "npformer exercise start NAME"),
        ("start pad --dir empty", "cannot be written"),
        ("check nothing-like-it-at-all", "unknown exercise"),
        ("check pad", "npformer exercise start pad"),
        ("check --dir new", "nothing is started"),
        ("check --all --png a.png", "--png draws one picture, and 5 files are checked"),
        ("hint --dir new", "npformer exercise hint NAME"),
        ("solution", "npformer exercise solution NAME"),
        ("list 77", "chapter 77 has no exercises: list takes the number of a chapter"),
        ("list softmax", "'softmax' is not a chapter: list takes"),
        ("list 5.2", "'5.2' is not a chapter: list takes"),
    ],
    "experiment": [
        ("ablations", "ablation"),
        ("ablation --out folder", "it is a folder"),
        ("ablation --out no/x.json", "there is no folder"),
        ("ablation --out list.json", "is a list and not a JSON object"),
    ],
    "explore": [
        ("'the dgo' --model runs/words", "the model does not know 'dgo' (did you mean dog?): use words of"),
        ("'the dog' --model runs/words --target 'le chein'", "does not know 'chein' (did you mean chien?)"),
        (f"'{'the ' * 50}' --model runs/words", "the sentence has 51 tokens, its end included, and a page h"),
        ("' ' --model runs/words", "the sentence ' ' is empty: write at least one word"),
        ("'the dog' --model runs/none", "there is no run runs/none: train one with npformer train"),
        ("'the dog' --model runs/words --out runs", "runs cannot be written (it is a folder): give another"),
        ("'the dog' --model runs/words --out no/x", "no/x cannot be written (there is no folder no): give a"),
        ("'the cat sees the cat' --model runs/text", "16: give a shorter one"),
        ("'the cat' --target a --model runs/text", "a language model reads one text and predicts"),
    ],
    "figures": [
        ("F99", "unknown figure 'F99': did you mean F"),
        ("nonsense", "unknown figure 'nonsense': npformer figures --list prints all names"),
        ("F29 --model nowhere --out folder", "there is no checkpoint nowhere/last.safetensors"),
        ("F23 --model runs/x", "--model has no effect on F23, because no trained model is shown"),
    ],
    "fill": [
        ("'the cat' --model runs/sentences", "text 1: 'the cat' has no [MASK]: write it in place of each wo"),
        ("[MASK] 'the [MASK] yak' --model runs/sentences", "text 2: 'the [MASK] yak' has 1 word that the mo"),
        ("'  ' --model runs/sentences", "text 1: the text '  ' is empty: write a sentence with [MASK] in pl"),
        (f"'{'[MASK] ' * 17}' --model runs/sentences", "text 1: the text has 17 tokens, and the model reads"),
        ("[MASK] --answers 101", "--answers is '101': give a whole number, 1 or more, at most 100"),
        ("[MASK] --answers 99 --model runs/sentences", "text 1: k is 99, and the model knows "),
        ("[MASK] --model no", "there is no run no: train a masked language model with npformer train"),
        ("[MASK] --model toy.safetensors", "toy.safetensors is a translator, which cannot fill gaps: use it"),
        ("[MASK] --model runs/toy", "runs/toy is a translator, which cannot fill gaps: use it with npformer"),
        ("[MASK] --model runs/text", "runs/text is a language model, which cannot fill gaps: use it with np"),
    ],
    "generate": [
        ("", 'give a prompt, as npformer generate "ROMEO:", or --perplexity with a file'),
        ("the tée --model runs/text", "prompt 2: the text has the character 'é', which the model has not se"),
        (f"'{'the cat ' * 3}' --model runs/text", "prompt 1 has 24 tokens, and the model reads 16 at most:"),
        ("--perplexity missing.txt --model runs/text", "missing.txt"),
        ("--perplexity letter.txt --model runs/text", "the text has a single token, and nothing follows it"),
        ("--perplexity zebra.txt --model runs/text", "the text has the character 'z', which the model has n"),
        ("--perplexity empty --model runs/text", "is empty: give a file with text"),
        ("the --model toy.safetensors", "is a translator, which cannot continue a text: use it with npforme"),
        ("the --model runs/toy", "is a translator, which cannot continue a text: use it with npformer trans"),
        ("the --model runs/sentences", "is a masked language model, which cannot continue a text: use it"),
    ],
    "gradcheck": [
        ("nonsense", "no component is called 'nonsense'"),
        ("own.py", "names a file, and no layer or function in it"),
        ("own.py:double", "give --shape"),
        ("own.py:double --shape 2,x", "--shape is '2,x': give the sizes of its axes"),
        ("own.py:doubel --shape 2", "did you mean double?"),
        ("mistakes.py:lonely --shape 2", "no lonely_backward"),
        ("mistakes.py:Needy --shape 2", "cannot be made without arguments"),
        ("mistakes.py:Raising --shape 2", "ZeroDivisionError in line 14"),
        ("gone.py:double --shape 2", "there is no file gone.py"),
        ("bad.py:double --shape 2", "bad.py could not be run: SyntaxError"),
        ("--model runs/text", "--model needs one sentence, and 0 were given"),
        ("--model runs/text 'the cat' 'a dog'", "--model needs one sentence, and 2 were given"),
        ("--model runs/text q.py", "the character 'q', which the model has not seen"),
    ],
    "inspect": [
        ("damaged", "damaged/last.safetensors"),
        ("damaged.safetensors", "damaged.safetensors"),
    ],
    "language": [
        (f"'{'a ' * 20}'", "a text has 20 words, and the models read 19 at most: give a shorter one"),
        ("'the cat, [MASK]!!!!!!!!!!!!!!!!'", "a text has 20 words, and the models read 19 at most"),
    ],
    "masks": [
        ("'  '", "the sentence is empty"),
        ("je --cross ' '", "the sentence of --cross is empty"),
        ("je --layer 2", "--layer is 2, and the model has 2: give 0 to 1"),
        ("je --causal --layer 1", "--causal takes --layer 0"),
        ("je --model runs/sentences", "is a masked language model, which cannot translate: use it"),
        (f"'{'je ' * 150}'", "a picture of 150 × 150 cells has no room"),
        ("je --out empty/below", "empty/below cannot be written"),
        ("cat --pad 100 --model runs/tiny", "the model's limit is"),
    ],
    "pretrained": [
        ("en-dee", "did you mean en-de?"),
        ("--export runs/toy --card card.json", "the card card.json exists and is left as it is"),
        ("--export nowhere --out x.safetensors --card card.json", "there is no run nowhere"),
        ("--export runs/toy --out x.bin --card card.json", "does not end in"),
        ("--export damaged --out x.safetensors --card card.json", "damaged/last.safetensors"),
        (f"{EXPORT} --card no/card.json", "no/card.json cannot be written"),
        (f"{EXPORT} --card list.json", "the model card is a list and not a JSON object"),
        (f"{EXPORT} --card half.json", "half.json: the model card has no entry 'data'"),
        (f"{EXPORT} --card proud.json", "proud.json has scores"),
        (f"{EXPORT} --card template.json", "has TO WRITE: in data"),
        (f"{EXPORT} --card card.json --scores half.json", "half.json: the score has no entry 'source'"),
        (f"{EXPORT} --card card.json --casing lower.de", "no capitals to learn from"),
        ("--export runs/sentences --out x.safetensors --card card.json", "a masked language model, which ca"),
        ("--export runs/tiny --layout gpt2 --out new", "a Transformer cannot be written as gpt2: give one o"),
        ("--export runs/sentences --layout bert --out folder", "folder is not empty"),
    ],
    "saliency": [
        ("'the cat' --model runs/text --target dog", "the target 'dog' is 3 tokens of this model"),
        ("'the cat' --model runs/text --position 7", "position is 7: the text has positions 0 .. 6"),
        ("'the cat' --model runs/sentences", "'the cat' has no [MASK]: write it in place of a word"),
        ("a --model runs/text --points 7", "--points is '7': give a whole number, 8 or more"),
        ("a --model runs/text --out a.txt", "cannot save a picture as 'a.txt'"),
    ],
    "score": [
        ("train.en short.fr --model runs/tiny", "train.en has 12 lines but short.fr has 1"),
        ("train.en empty --model runs/tiny", "empty is empty"),
        ("train.en gone --model runs/tiny", "there is no file gone"),
        ("train.en latin.txt --model runs/tiny", "latin.txt is not UTF-8 text at line 1"),
        ("train.en train.fr --model runs/tiny --known-words gone", "there is no file gone"),
        ("train.en train.fr --model runs/tiny --beam 1 --length-penalty 1", "--length-penalty has no effect"),
        ("train.en train.fr --model runs/tiny --out no/found", "there is no folder no"),
        ("train.en train.fr --model runs/tiny --out folder", "folder cannot be written (it is a folder)"),
        ("long.en long.en --model runs/tiny", "line 2 has"),
        ("train.en train.fr --model en-ed", "did you mean en-de?"),
        ("train.en train.fr --model en-de --last", "en-de is not the folder of a run"),
    ],
    "site": [
        (".", ". is not empty and not a site of npformer: give another folder"),
        ("empty", "empty cannot be written (it is a file): give another folder"),
        ("empty/site", "empty/site cannot be written (Not a directory): give another folder"),
        ("new --only 99", "unknown lesson '99'"),
        ("new --only 3 --model none", "none"),
    ],
    "translate": [
        ("'the cat' ' ' --model runs/tiny", "line 2 is empty"),
        ("'the cat' --model nowhere", "there is no run nowhere"),
        ("'the cat' --model runs/text", "runs/text is a language model, which cannot translate"),
        ("'the cat' --model runs/sentences", "runs/sentences is a masked language model, which cannot trans"),
        ("hello --pretrained", "npformer translate has no argument --pretrained: it is now called --model"),
    ],
    "train": [
        ("train.en short.fr", "train.en has 12 lines but short.fr has 1"),
        ("train.en latin.txt", "latin.txt"),
        ("train.en empty", "empty"),
        ("train.en missing", "missing"),
        ("train.en", "1 file was given"),
        ("train.en train.fr --run runs/tiny", "--resume"),
        ("--recipe small", "npformer train has no argument --recipe: it is now called --preset"),
        ("--architecture paper-bas", "did you mean paper-base?"),
        ("--preset smal", "small"),
        ("--backend cupy", "needs CuPy and a GPU that answers"),
        ("--resume nowhere", "nowhere"),
        ("--resume damaged", "damaged/last.safetensors"),
        ("--resume runs/tiny --steps 1", "has made 2 steps already"),
        ("train.en train.fr --subwords 5000", "the largest size possible is"),
        ("train.en train.fr --subwords 5", "the smallest size is"),
        # a language model on one text
        ("--text empty", "empty is empty: give a file with text"),
        ("--text one.txt", "one.txt has no other character than 'a': give a text with at least two"),
        ("--text short.fr", "short.fr has 2 tokens for training, and the model's context is 128: give a lon"),
        ("--text latin.txt", "latin.txt is not UTF-8 text at line 1 (byte 0xe9): save it as UTF-8, or"),
        ("--text .", ". is a folder: give a text file in it"),
        ("--text train.en --vocab-size 30", "--vocab-size has an effect only with two files to"),
        ("--text train.en --tokens subwords --vocab-size 3", "vocab_size is 3, fewer than the characters"),
        ("--text train.en --architecture rnn", "the model reads sentence pairs and the dataset"),
        ("--architecture gpt2", "the model reads text and the dataset has sentence pairs: choose"),
        ("--text train.en --set bleu_every=5", "--set bleu_every has an effect only with sentenc"),
        ("--text train.en --set pad_id=0", "pad_id is 0, and the windows of a text have no padd"),
        ("--text train.en --set vocab_size=5", "vocab_size is 5, but train.en has 14 different"),
        ("--text train.en --architecture gpt2 --set rotary_base=5", "rotary_base has an effect only with po"),
        # settings of --set
        ("--set d_modell=10", "there is no setting d_modell: a model has"),
        ("--set d_model", "write NAME=VALUE"),
        ("--set norm=before", "choose one of post, pre"),
        ("--set d_model=10 --set n_heads=4", "not divisible by n_heads 4"),
        ("--set factor=2", "--set factor has an effect only with schedule warmup, and schedule is cosine"),
        ("--set schedule=constant --set warmup_steps=3", "warmup_steps has an effect only with schedule war"),
        ("--set schedule=warmup --set learning_rate=1", "learning_rate has an effect only with schedule con"),
        ("--set schedule=constant --set min_learning_rate=1", "min_learning_rate has an effect only with sc"),
        ("--set max_distance=3", "max_distance has an effect only with positions relative"),
        ("--set bleu_sentences=3", "bleu_sentences has an effect only with bleu_every: add --set bleu_every"),
        ("--set average_every=3", "average_every has an effect only with average_last"),
        ("--set d_ff=3 --set d_ff=4", "--set gives 'd_ff' twice: give it once"),
        ("--set seed=3 --seed=3", "--seed and --set seed were both given: leave one of them out"),
        ("--set steps=3 --steps=3", "--steps and --set steps were both given"),
        ("--set batch_size=3 --batch-size=3", "--batch-size and --set batch_size were both given"),
        ("--set batch_size=3 --set batch_tokens=100", "both batch_size and batch_tokens are given"),
        ("--set d_model=9223372036854775808", "--set d_model=9223372036854775808 is too large"),
        ("--set dropout=1e999", "--set dropout=1e999 is too large"),
        ("--set betas=(0.9,1e999)", "--set betas=(0.9,1e999) is too large"),
        ("--set d_model=1_000", "d_model is '1_000': it must be a whole number"),
        ("--set d_model=0x10", "d_model is '0x10': it must be a whole number"),
        (f"--set d_model={'(' * 150}", "it must be a whole number"),
        (f"--set d_model={'1' * 201}", "the value of --set 'd_model' has 201 characters"),
        ("--set final_norm=false", "final_norm is 'false': it must be True or False"),
        ("--set final_norm=1", "final_norm is 1: it must be True or False"),
        ("--set betas=5", "betas is 5: give two numbers"),
        ("--set pad_id=x", "pad_id is 'x': it must be a whole number, 0 or more"),
    ],
}
# the beginnings of command lines that read a model
READERS = ["translate x", "score train.en train.fr", "attention x", "explore x", "saliency x", "masks x"]
READERS += ["figures F29 --out folder", "fill [MASK]", "generate x", "gradcheck x"]

LINES = [(f"{command} {line}", words) for command, lines in MISTAKES.items() for line, words in lines]
LINES += [(f"{line} --model damaged", "damaged/last.safetensors") for line in READERS]


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
    assert printed.out == ""
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
