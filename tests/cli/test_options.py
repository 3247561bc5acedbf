"""Options: their types, the sentences of their errors, and the refusal of what would have no effect."""

import pytest
from commands import refused

from npformer import UserError
from npformer.cli.main import COMMANDS, load_command, make_parser
from npformer.cli.options import (
    COUNT,
    EXPONENT,
    FINITE,
    INDEX,
    INTEGERS,
    POSITIVE,
    SECONDS,
    SEED,
    SHAPE,
    SHARE,
    Choice,
    Parser,
    Real,
    Shape,
    Whole,
    excludes,
    needs,
    only_if,
)

# forms of numbers that int() or float() of Python would read, or that no array can hold
NO_NUMBERS = ["", " 1", "1 ", "1_000", "٣", "１", "1e999", "nan", "inf", "-inf", "0x10", "1,0", "--", "one"]
NO_INTEGERS = [*NO_NUMBERS, "1.5", "1e3", "9" * 23, str(INTEGERS), "-" + "9" * 23, "-1"]


@pytest.mark.parametrize("text", NO_INTEGERS)
@pytest.mark.parametrize("kind", [COUNT, INDEX, SEED])
def test_whole_numbers_have_one_form(kind, text):
    with pytest.raises(Exception, match="give a whole number"):
        kind(text)


@pytest.mark.parametrize("text", NO_NUMBERS)
@pytest.mark.parametrize("kind", [POSITIVE, SHARE, FINITE, SECONDS])
def test_real_numbers_have_one_form(kind, text):
    with pytest.raises(Exception, match=r"^is .*: give a"):
        kind(text)


def test_the_ends_of_each_range():
    assert [COUNT("1"), INDEX("0"), SEED("0"), SEED(str(INTEGERS - 1))] == [1, 0, 0, INTEGERS - 1]
    assert [POSITIVE("1e-300"), SHARE("0"), SHARE(".999"), FINITE("-1.5e2"), SECONDS("86400")] == [
        1e-300, 0.0, 0.999, -150.0, 86400.0,
    ]  # fmt: skip
    assert SHAPE("2,5,8") == (2, 5, 8)
    refused = [(COUNT, "0"), (POSITIVE, "0"), (POSITIVE, "1e-999"), (SHARE, "1"), (SHARE, "-0.1")]
    assert [EXPONENT("10"), EXPONENT("-10")] == [10.0, -10.0]
    refused += [(EXPONENT, "10.01"), (EXPONENT, "-1e9")]
    refused += [(SECONDS, "86401"), (SECONDS, "0"), (Whole(0, 9), "10")]
    refused += [(SHAPE, text) for text in ("", "2,,3", "0,5", "-1", "2, 5", "1_0", ",".join(["1"] * 33))]
    for kind, text in refused:
        with pytest.raises(Exception, match=r"^(is|has) .*: give "):
            kind(text)


def options_of(command):
    """Return the actions of a command's parser, without --help."""
    return [action for action in make_parser(command)._actions if action.dest != "help"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_a_shared_type(command):
    """No option takes a number or a choice with a type of its own."""
    for action in options_of(command):
        assert action.choices is None, action.dest
        assert action.type is None or isinstance(action.type, (Whole, Real, Shape, Choice)), action.dest


@pytest.mark.parametrize("command", COMMANDS)
def test_every_number_of_every_command_is_refused_in_one_sentence(capsys, command):
    for action in options_of(command):
        if isinstance(action.type, (Whole, Real, Shape)):
            option = action.option_strings[0]
            for text in ("9" * 23, "nan", "٣", "x" * 5000):
                error = refused(capsys, command, f"{option}={text}")
                assert f"{option} is " in error
                assert len(error) < 400
        elif isinstance(action.type, Choice):
            name = [action.option_strings[0] + "=x"] if action.option_strings else ["x"]
            assert " is 'x': " in refused(capsys, command, *name)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_option_is_refused_and_an_abbreviation_names_the_option(capsys, command):
    assert f"npformer {command} --help lists all" in refused(capsys, command, "--zzzzzz")
    options = {option for action in options_of(command) for option in action.option_strings}
    for option in options:
        if option[:-1] not in options:  # --seed is an option besides --seeds
            assert "did you mean --" in refused(capsys, command, option[:-1])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("train --steps 0", "--steps is '0': give a whole number, 1 or more"),
        ("tour --seed -1", "--seed is '-1': give a whole number, 0 or more"),
        (
            "masks --pad 99999999999999999999999",
            "--pad is '99999999999999999999999': give a whole number, 0 or more and below 2**63",
        ),
        ("train --steps", "--steps needs one argument: npformer train --help describes it"),
        ("train --valid a", "--valid needs 2 arguments: npformer train --help describes it"),
        ("lens", "npformer lens needs the argument text: npformer lens --help describes it"),
        ("fill", "npformer fill needs the argument TEXT: npformer fill --help describes it"),
        ("translate --beam=x", "--beam is 'x': give a whole number, 1 or more"),
        ("translate --last=x", "--last takes no value: leave out the = and what follows it"),
        ("train --task copi", "--task is 'copi': did you mean copy?"),
        ("exercise chek", "ACTION is 'chek': did you mean check?"),
        ("trian", "there is no command 'trian': did you mean train?"),
        ("qqqqqqqq", "there is no command 'qqqqqqqq': npformer --help lists all commands"),
        ("--versio", "npformer has no argument --versio: did you mean --version?"),
        ("train --stpes 3", "npformer train has no argument --stpes: did you mean --steps?"),
        ("train -steps 3", "npformer train has no argument -steps: did you mean --steps?"),
        ("train --steps 3 --steps 4", "--steps was given twice, with different values: give it once"),
        ("glossary a b", "npformer glossary has no argument b: npformer glossary --help lists all arguments"),
        ("data multi30k =b", "npformer data has no argument =b: npformer data --help lists all arguments"),
    ],
)
def test_errors_are_one_sentence(capsys, arguments, sentence):
    assert refused(capsys, arguments) == sentence


def a_parser(*rules):
    parser = Parser("npformer test", rules=rules)
    parser.add_argument("word", nargs="?")
    parser.add_argument("--some-size", type=COUNT, default=3)
    parser.add_argument("--other", action="store_true")
    return parser


def test_the_rules():
    parser = a_parser(needs("--some-size", "--other"))
    assert parser.parse(["--some-size", "3", "--other"]).some_size == 3
    with pytest.raises(UserError, match="--some-size has an effect only with --other: give that as well"):
        parser.parse(["--some-size", "3"])
    parser = a_parser(excludes("--some-size", "--other word", "it says so"))
    assert parser.parse(["--other", "word"]).given == {"other", "word"}
    with pytest.raises(UserError, match="--other has no effect with --some-size, because it says so: leave"):
        parser.parse(["--other", "--some-size", "3"])
    with pytest.raises(UserError, match=r"^the word has no effect with --some-size"):
        parser.parse(["the word", "--some-size", "3"])
    parser = a_parser(only_if("--other", lambda arguments: arguments.some_size > 3, "with more"))
    assert parser.parse(["--other", "--some-size", "4"]).other
    with pytest.raises(UserError, match="--other has an effect only with more: leave it out"):
        parser.parse(["--other"])


# by command, situations and what has no effect in each, so that every rule refuses each of its options
WITHOUT_EFFECT = {
    "bench": {
        "--profile": "--curves | --decoding | --against torch | --repeats 5 | --workers 2",
        "--curves": "--decoding | --only tiny | --against torch | --repeats 5 | --seconds 1 | --workers 2 | "
        "--backend numpy",
        "--decoding": "--only tiny | --against torch | --repeats 5 | --seconds 1 | --backend numpy",
    },
    "exercise": {
        "": "--all | start 1 --seconds 5 | hint --png a.png | solution 1 --dir exercises",
        "check": "1 --all | a/b.py --dir c",
    },
    "bugs": {"": "--all | start 1 --seconds 5 | hint --png a.png", "check": "1 --all | a/b.py --dir c"},
    "class": {
        "grade a": "--write b | --name b",
        "export nbgrader a": "--out b | --csv b | --workers 2",
        "mistakes": "--write a --exercise b | --points 3 | --seed 3 | --seconds 3 | --memory 300 | "
        "--language zh",
    },
    "data": {"multi30k --from a": "--base-url b"},
    "family": {
        "": "--steps 9 | --seed 0 | --out a | --seeds 2 | --search --json",
        "--measure": "--json | --search",
    },
    "figures": {"": "--json", "--list": "--out figures | --svg | --model a"},
    "glossary": {"a": "--write", "--language zh": "--write"},
    "index": {"a": "--write"},
    "gradcheck": {
        "": "--last | --json --verbose | --shape 2,3 | --seconds 3 | softmax a.py:b",
        "--list": "--method complex | --shape 2 | --seed 0 | --verbose | --json | --seconds 3 | a --model b "
        "| --backend cupy",
        "a --model b": "--shape 2 | --method complex",
        "--backend cupy": "--method difference | a --model b | --shape 2 | --seconds 3",
        "a.py:b": "--backend cupy",
    },
    "lesson": {
        "1": " | ".join(f"{a} {b}" for a in ("--notebook", "--html") for b in ("--restart", "--figures f"))
    },
    "lessons": {"--route main": "--write", "--language zh": "--write"},
    "masks": {
        "--cross a": "--window 1 | --causal",
        "": "--last | --model a --seed 0",
        "je": "--mistake shifted | --mistake no-padding --pad 0",
    },
    "pretrained": {
        "": "--out a | --card a | --casing a | --scores a | --last | --json --markdown",
        "--export a": "--markdown | --json | --layout gpt2",
        "en-de --export a": "",
        "--export a --layout gpt2 --out b": "--card c | --casing c | --scores c",
    },
    "train": {
        "--resume c": "a b | --valid a b | --task copy | --direction en-fr | --limit 3 | --data a | "
        "--cased | --max-length 64 | --vocab-size 8000 | --min-count 2 | --subwords 100 | --unfiltered | "
        "--seed 0 | --preset small | --architecture small | --batch-size 64 | --set seed=0 | --run c | "
        "--start-from d | --text d | --tokens bytes",
        "a b": "--preset multi30k-en-de | --task copy | --direction en-fr | --text c | "
        "--subwords 100 --vocab-size 8000 | --subwords 100 --min-count 2 | --preset gpt-shakespeare",
        "": "--valid a b | --limit 5 | --min-count 2 | --subwords 100 | --unfiltered | --cased | --data a",
        "--task copy": "--preset multi30k-en-de | --max-length 64 | --preset gpt-shakespeare",
        "--preset multi30k-en-de": "--vocab-size 8000",
        "--text": "--task copy | --direction en-fr | --data a | --preset small",
        "--tokens bytes": "--preset small",
        "--direction en-fr": "--preset gpt-shakespeare",
    },
    "build": {"": "--steps 2"},
    "lens": {"a": "--target b | --versus b"},
    "translate": {"--json": "--scores | --alignment"},
    "saliency": {"a --method gradient": "--tolerance 0.1 | --points 80"},
    "generate": {
        "--greedy": "--temperature 1 | --top-k 2 | --top-p 0.5 | --seed 0",
        "--perplexity a": "ROMEO: | --tokens 3 | --greedy | --temperature 1 | --top-k 2 | --top-p 0.5 | "
        "--seed 0 | --stop b | --chat",
    },
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_rule_refuses_each_of_its_options(capsys, command):
    """Each pair of a rule and an option is the reason why one of the command lines is refused."""
    parser = make_parser(command)
    rules = getattr(load_command(command), "RULES", ())
    expected = {(number, option) for number, rule in enumerate(rules) for option in rule.options}
    found = set()
    for situation, others in WITHOUT_EFFECT.get(command, {}).items():
        for other in others.split(" | "):
            line = f"{situation} {other}".split()
            assert " effect " in refused(capsys, command, *line)
            parser.rules = ()
            arguments = parser.parse(line)
            names = {name: a.dest for a in parser._actions for name in a.option_strings or [a.dest]}
            for number, rule in enumerate(rules):
                if not rule.holds(arguments):
                    found |= {(number, option) for option in rule.options if names[option] in arguments.given}
    assert found == expected


@pytest.mark.parametrize("command", COMMANDS)
def test_the_rules_name_options_that_exist(command):
    parser = make_parser(command)
    known = {name for action in parser._actions for name in action.option_strings or [action.dest]}
    for rule in getattr(load_command(command), "RULES", ()):
        assert {*rule.options, *rule.about} <= known
