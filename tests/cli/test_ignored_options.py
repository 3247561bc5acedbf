"""No option is ignored: after a command, each option that was given has been read by it."""

import json
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
import toy_pretrained
from capstone_solutions import solve
from recorded_arguments import RecordedArguments, run_recorded

from npformer.checking.cases import all_cases
from npformer.cli import bench, classroom, experiment, family, tour, train
from npformer.cli import data as data_command
from npformer.cli import lesson as lesson_command
from npformer.cli import tasks as tasks_command
from npformer.cli.main import COMMANDS, main, make_parser, read_command_line
from npformer.data.dataset import task_dataset
from npformer.learn.experiments.family import FamilyRow, Trial
from npformer.learn.site.build import Built
from npformer.learn.tasks import Verdict
from npformer.models.registry import architecture_class
from npformer.training.presets import Preset

TINY = "--set schedule=constant --set d_model=16 --set d_ff=16 --set n_heads=2 --set n_layers=1"
GPT = "--set d_model=8 --set n_heads=1 --set n_layers=1 --set context=8 --batch-size 2"
SCORE = {
    "source": "a", "reference": "b", "setting": "raw", "bleu": 1.0, "signature": "s", "beam": 5,
    "length_penalty": 0.6, "sentences": 3, "empty": 0,
}  # fmt: skip
OWN = "def double(x):\n    return 2 * x, None\n\ndef double_backward(dy, cache):\n    return 2 * dy\n"

# command lines that together have every option of every command; others read the run of the first one
LINES = [
    f"train train.en train.fr --run runs/tiny --steps 4 {TINY} --seed 1 --valid train.en train.fr --limit 20 "
    "--max-length 20 --vocab-size 50 --min-count 1 --batch-size 4 --backend numpy --workers 2 --unfiltered "
    "--cased --preset small",
    f"train --task copy --steps 1 --architecture small --threads 1 --run runs/copy {TINY}",
    f"train train.en train.fr --subwords 30 --unfiltered --steps 1 --run runs/sub {TINY}",
    f"train --direction fr-en --steps 1 --run runs/fr {TINY} --batch-size 2",
    f"train --preset multi30k-en-de --data corpus --steps 1 --workers 1 --run runs/m30k {TINY}",
    f"train --text train.en --tokens subwords --vocab-size 30 --steps 1 --run runs/text --workers 1 {GPT}",
    f"train --preset gpt-shakespeare --architecture gpt-small --tokens bytes --steps 1 --run runs/gpt {GPT}",
    f"train --text train.en --tokens subwords --vocab-size 30 --steps 1 --start-from runs/text --run runs/on "
    f"--workers 1 {GPT}",
    "train --resume runs/text --steps 2",
    "train --resume runs/copy --steps 2 --backend numpy --threads 1",
    "train --resume runs/tiny --steps 5 --workers 2",
    "curves runs/tiny --out curves.png",
    "translate 'the cat' --model runs/tiny --last --beam 2 --length-penalty 0.5 --backend numpy",
    "generate 'the cat' --model runs/text --last --tokens 3 --temperature 0.8 --top-k 5 --top-p 0.9 --seed 1 "
    "--stop dog --backend numpy",
    "generate 'the cat' --model runs/text --greedy",
    "generate --perplexity train.en --model runs/text",
    "train --preset bert-small --text train.en --vocab-size 20 --min-count 1 --cased --steps 1 "
    "--run runs/gaps --set d_model=8 --set n_heads=1 --set n_layers=1",
    "fill 'the [MASK] sleeps' --model runs/gaps --last --answers 2 --json --backend numpy",
    "language 'the [MASK] sleeps' 'the cat' --steps 2 --answers 2 --seed 1",
    "score train.en train.fr --model runs/tiny --last --beam 2 --length-penalty 1 --backend numpy --text raw "
    "--limit 2 --known-words train.fr --seed 3 --out out.txt --json",
    "attention 'the cat sleeps' --model runs/tiny --last --kind encoder --layer 0 --head 0 --word cat "
    "--out maps",
    "attention 'the cat' --model runs/text --out maps",
    "attention 'the [MASK]' --model runs/gaps --out maps",
    "explore 'the cat' --model runs/tiny --last --target 'le chat' --out page.html --open",
    "explore 'the cat' --model runs/text",
    "saliency 'the cat' --model runs/text --last --target s --position 1 --score logit --points 8 "
    "--tolerance 0.1 --out saliency.png",
    "saliency 'the [MASK] sleeps' --model runs/gaps --method gradient",
    "masks 'je suis' --pad 1 --causal --window 1 --layer 0 --head 1 --seed 3 --out masks",
    "masks 'je suis' --causal --mistake shifted",
    "masks 'le chat' --cross 'the cat' --model runs/tiny --last",
    "gradcheck softmax --method difference --seed 1 --json",
    "gradcheck softmax --verbose",
    "gradcheck softmax --list",
    "gradcheck own.py:double --shape 2,3 --seconds 30",
    "gradcheck 'the cat' --model runs/tiny --last --seconds 30 --seed 1 --json",
    "inspect runs/tiny --last --json",
    "figures F23 --list --json",
    "figures F23 --out figures --svg",
    "figures F07 --model runs/tiny",
    "data multi30k --folder here --languages en --from there",
    "data multi30k --base-url http://127.0.0.1:9/",
    "pretrained en-de --json",
    "pretrained --markdown",
    "pretrained --export runs/toy --last --out toy.safetensors --card card.json --casing raw.de "
    "--scores s.json",
    "pretrained --export runs/gaps --last --layout bert --out folder",
    "lesson 1 --notebook 1.ipynb --html 1.html",
    "lesson 1 --restart --figures pictures",
    "lessons",
    "lessons --write README.md",
    "exercise list 5 --dir work",
    "exercise start softmax-backward --dir work",
    "exercise check --all --seconds 5 --dir work",
    "exercise check softmax-backward --png wrong.png --dir work",
    "bugs start 3 --dir work",
    "bugs check --all --seconds 5 --dir work",
    "bugs check 3 --png wrong.png --dir work",
    "build 'the cat' --train --dir solved --steps 2 --seconds 5",
    "class export nbgrader course --name week-1 --exercise 5 --points 3 --seed 1 --seconds 5 --memory 512",
    "class export gradescope gs --exercise softmax --points 3 --seed 1 --seconds 5 --memory 512",
    "class grade solved --exercise softmax --points 2 --seed 1 --seconds 5 --memory 512 --workers 1 "
    "--out out --csv grades.csv",
    "class mistakes --exercise softmax",
    "class mistakes --write teaching.md",
    "site pages --only 5.1 --model runs/tiny",
    "experiment scaling --out results.json",
    "family --json",
    "family --measure --steps 2 --seed 1 --seeds 2 --out families",
    "family --search --steps 2 --seed 1 --out families",
    "bench --only tiny --against torch --repeats 2 --seconds 0.1 --workers 2 --backend numpy --json -",
    "bench --profile --only tiny --seconds 0.1 --backend numpy --json -",
    "bench --curves curves.png --json -",
    "bench --decoding --workers 2 --json -",
    "index softmax",
    "index --write INDEX.md",
    "glossary softmax",
    "glossary --write GLOSSARY.md",
    "tour --steps 1 --seed 1 --out tour --backend numpy",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the files that the command lines name, and with a trained run."""
    path = tmp_path_factory.mktemp("ignored")
    (path / "train.en").write_text("the cat sleeps\nthe dog eats\na cat eats\n" * 10, encoding="utf-8")
    (path / "train.fr").write_text("le chat dort\nle chien mange\nun chat mange\n" * 10, encoding="utf-8")
    (path / "raw.de").write_text("Ein Mann\n" * 3, encoding="utf-8")
    (path / "own.py").write_text(OWN)
    solve(path / "solved", "softmax")
    (path / "teaching.md").write_bytes((Path(__file__).parents[2] / "docs/teaching.md").read_bytes())
    return path


def a_verdict(*arguments):
    return Verdict(solved=False, message="not yet", difference=[[1.0]])


@pytest.fixture(autouse=True)
def quick(folder, monkeypatch):
    """Replace what takes long and has nothing to do with the options, and open no browser."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("webbrowser.open_new_tab", lambda address: True)
    monkeypatch.setattr(Preset, "dataset", lambda preset, folder: task_dataset("copy", n=20))
    monkeypatch.setattr(data_command, "get_all", lambda *arguments: 0)
    monkeypatch.setattr(data_command, "_conclude", lambda *arguments: None)
    monkeypatch.setattr(lesson_command, "as_page", lambda lesson: "")
    monkeypatch.setattr(lesson_command.Stepper, "walk", lambda stepper, begin: 0)
    monkeypatch.setattr(tasks_command, "check", a_verdict)
    monkeypatch.setattr(classroom, "grade_class", lambda *arguments: 0)
    row = FamilyRow("a", 1, 1, 1.0, 1.0, (1.0,), (), ())
    monkeypatch.setattr(experiment, "EXPERIMENTS", {"scaling": lambda path, report: []})
    monkeypatch.setattr(family.experiment, "plan", lambda *arguments: [SimpleNamespace(name="a")])
    monkeypatch.setattr(family.experiment, "measure_system", lambda *arguments, **settings: row)
    trial = Trial("a", "rnn", 1.0, {}, 1.0)
    monkeypatch.setattr(family.experiment, "try_settings", lambda *arguments, **settings: trial)
    monkeypatch.setattr(bench, "compare", lambda *arguments, **settings: {"name": "tiny"})
    monkeypatch.setattr(bench, "require_torch", lambda: None)
    monkeypatch.setattr("npformer.bench.profile.profile", lambda *arguments, **settings: [])
    monkeypatch.setattr("npformer.bench.costs.measure_costs", lambda report: [])
    monkeypatch.setattr(bench, "draw_curves", lambda rows, path: None)
    monkeypatch.setattr("npformer.bench.decoding.MEASUREMENTS", {"a": lambda workers: {}})
    monkeypatch.setattr(tour, "all_cases", lambda: all_cases()[:1])
    for name in ("show_translations", "show_evaluation"):
        monkeypatch.setattr(tour, name, lambda out, translator: None)
    monkeypatch.setattr(tour, "draw_pictures", lambda translator, folder: [])
    monkeypatch.setattr(tour, "write_page", lambda folder: folder / "explorer.html")
    monkeypatch.setattr("npformer.cli.site.build_site", lambda *arguments: Built(0, 0))
    monkeypatch.setattr("npformer.learn.course.trained.builtin_dataset", lambda: task_dataset("copy", n=20))
    monkeypatch.setattr(train, "builtin_dataset", lambda *arguments, **settings: task_dataset("copy", n=20))
    monkeypatch.setattr(family, "builtin_dataset", lambda: None)
    monkeypatch.setattr(family, "builtin_corpus", lambda: SimpleNamespace(new_words=[]))
    (folder / "families").mkdir(exist_ok=True)


@pytest.fixture
def exported(folder, monkeypatch):
    """Make an untrained run with subwords, and a card, for the export."""
    from npformer.pretrained import Card, read_pretrained, save_pretrained, weights_fingerprint
    from npformer.storage.checkpoint import save_checkpoint

    (folder / "runs/toy").mkdir(parents=True, exist_ok=True)
    save_checkpoint(toy_pretrained.toy_checkpoint(), folder / "runs/toy/last.safetensors")
    (folder / "card.json").write_text(json.dumps(toy_pretrained.FIELDS))
    save_pretrained(toy_pretrained.toy_checkpoint(), folder / "same.safetensors", toy_pretrained.toy_card())
    weights = weights_fingerprint(read_pretrained(str(folder / "same.safetensors")).model.state_dict())
    (folder / "s.json").write_text(json.dumps(SCORE | {"weights": weights}))
    monkeypatch.setattr(Card, "from_dict", lambda entries: toy_pretrained.toy_card())


@pytest.mark.usefixtures("exported")
@pytest.mark.parametrize("line", LINES)
def test_every_option_that_is_given_is_read(line, capsys):
    status, ignored = run_recorded(shlex.split(line))
    assert status in (0, 1), capsys.readouterr()
    assert ignored == []


def test_the_command_lines_have_every_option():
    given = {command: set() for command in COMMANDS}
    for line in LINES:
        command, *others = shlex.split(line)
        given[command] |= make_parser(command).parse(others).given
    for command, names in given.items():
        assert {action.dest for action in make_parser(command)._actions} - {"help"} == names, command


def test_an_ignored_option_is_noticed():
    _, arguments = read_command_line(["tour", "--steps", "3", "--seed", "0", "--out", "tour"])
    recorded = RecordedArguments(arguments)
    assert recorded._ignored == ["out", "seed", "steps"]
    assert recorded.steps == 3
    assert recorded._ignored == ["out", "seed"]


# settings of --set


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["factor=2"], "--set factor has an effect only with schedule warmup, and schedule is cosine"),
        (["schedule=constant", "warmup_steps=3"], "warmup_steps has an effect only with schedule warmup or"),
        (["schedule=warmup", "learning_rate=1"], "learning_rate has an effect only with schedule constant"),
        (
            ["schedule=constant", "min_learning_rate=1"],
            "min_learning_rate has an effect only with schedule cos",
        ),
        (["max_distance=3"], "max_distance has an effect only with positions relative"),
        (["bleu_sentences=3"], "bleu_sentences has an effect only with bleu_every: add --set bleu_every=N"),
        (["average_every=3"], "average_every has an effect only with average_last"),
        (["d_ff=3", "d_ff=4"], "--set gives 'd_ff' twice: give it once"),
        (["seed=3", "--seed=3"], "--seed and --set seed were both given: leave one of them out"),
        (["steps=3", "--steps=3"], "--steps and --set steps were both given"),
        (["batch_size=3", "--batch-size=3"], "--batch-size and --set batch_size were both given"),
        (["batch_size=3", "batch_tokens=100"], "both batch_size and batch_tokens are given"),
        (["d_model=9223372036854775808"], "--set d_model=9223372036854775808 is too large"),
        (["dropout=1e999"], "--set dropout=1e999 is too large"),
        (["betas=(0.9,1e999)"], "--set betas=(0.9,1e999) is too large"),
        (["d_model=1_000"], "d_model is '1_000': it must be a whole number"),
        (["d_model=0x10"], "d_model is '0x10': it must be a whole number"),
        (["d_model=" + "(" * 150], "it must be a whole number"),
        (["d_model=" + "1" * 201], "the value of --set 'd_model' has 201 characters"),
        (["final_norm=false"], "final_norm is 'false': it must be True or False"),
        (["final_norm=1"], "final_norm is 1: it must be True or False"),
        (["betas=5"], "betas is 5: give two numbers"),
        (["pad_id=x"], "pad_id is 'x': it must be a whole number, 0 or more"),
    ],
)
def test_settings_without_effect_or_of_a_wrong_form_are_refused(capsys, settings, words):
    options = [part for each in settings for part in ([each] if each.startswith("--") else ["--set", each])]
    assert main(["train", "--task", "copy", "--run", "runs/none", *options]) == 2
    printed = capsys.readouterr().err
    assert words in printed
    assert printed.count("\n") == 1
    assert not Path("runs/none").exists()


STRANGE = ["True", "None", "x", "", "[1]", "(1,)", "{}", "{1: 2}", "-1", "0", "1e300", "1j", "b'x'", "..."]


DATA = {
    "small": ["--task", "copy"],
    "rnn": ["--task", "copy"],
    "gpt-small": ["--text", "train.en"],
    "bert-small": ["--preset", "bert-small", "--text", "train.en"],
}


class WouldBegin(Exception):
    """Raised where a training would begin."""


@pytest.mark.parametrize("architecture", DATA)
def test_every_setting_takes_or_refuses_any_value(architecture, monkeypatch, capsys):
    """Each value either begins a training or is refused in one sentence, and never ends in a traceback."""

    def begin(*arguments, **settings):
        raise WouldBegin

    monkeypatch.setattr(train, "train_run", begin)
    dataset = task_dataset("copy", n=20)
    monkeypatch.setattr(train, "task_dataset", lambda task: dataset)
    model = architecture_class(architecture)
    names = [*model.__dataclass_fields__, *train.TrainingConfig.__dataclass_fields__]
    for name in names:
        for value in STRANGE:
            line = ["train", *DATA[architecture], "--architecture", architecture, "--set", f"{name}={value}"]
            try:
                assert main(line) == 2, line
            except WouldBegin:
                continue
            printed = capsys.readouterr().err
            assert printed.count("\n") == 1, line
