"""The options of all commands: the types of their values, the parser, and the rules of what goes together.

A command declares its options with the types below, and in `RULES` the situations in which an option would
have no effect. The parser knows which options were really given, and refuses those that would be ignored.
"""

import argparse
import math
import re
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from npformer.errors import UserError, did_you_mean, nearest

INTEGERS = 2**63  # whole numbers are below this, so that they fit into every array and every file
DAY = 86_400  # seconds
LONGEST_CHOICE = 60  # of the names of a choice that a usage line shows

_WHOLE = re.compile(r"[+-]?[0-9]+", re.ASCII)
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


# Types of values


@dataclass(frozen=True)
class Whole:
    """The type of an option whose value is a whole number from `least` to `most`."""

    least: int
    most: int = INTEGERS - 1

    @property
    def wanted(self) -> str:
        """The values that are allowed, for a message."""
        return f"a whole number, {self.least} or more" + (f", at most {self.most}" if self._bounded else "")

    @property
    def _bounded(self) -> bool:
        return self.most < INTEGERS - 1

    def __call__(self, text: str) -> int:
        """Return the number that a text says."""
        # int() would also take spaces, underscores and the digits of all scripts
        if not _WHOLE.fullmatch(text):
            raise _refusal(text, self.wanted)
        if len(text) > 22 or int(text) > self.most:
            raise _refusal(text, self.wanted if self._bounded else f"{self.wanted} and below 2**63")
        if int(text) < self.least:
            raise _refusal(text, self.wanted)
        return int(text)


@dataclass(frozen=True)
class Real:
    """The type of an option whose value is a finite number below 2**63 that `allows` accepts."""

    wanted: str
    allows: Callable[[float], bool] = math.isfinite

    def __call__(self, text: str) -> float:
        """Return the number that a text says."""
        value = float(text) if _REAL.fullmatch(text) else math.nan
        if not abs(value) < INTEGERS:  # True for NaN, too
            raise _refusal(text, self.wanted if math.isnan(value) else f"{self.wanted} and below 2**63")
        if not self.allows(value):
            raise _refusal(text, self.wanted)
        return value


@dataclass(frozen=True)
class Shape:
    """The type of an option whose value is the shape of an array, as 2,5,8."""

    wanted: str = "the sizes of its axes, each a whole number, 1 or more, as 2,5,8"

    def __call__(self, text: str) -> tuple[int, ...]:
        """Return the sizes that a text says."""
        try:
            sizes = tuple(map(COUNT, text.split(",")))
        except ArgumentTypeError:
            raise _refusal(text, self.wanted) from None
        if len(sizes) > 32:
            raise ArgumentTypeError(f"has {len(sizes)} axes: give at most 32")
        return sizes


@dataclass(frozen=True)
class Choice:
    """The type of an option whose value is one of some names."""

    names: tuple[str, ...]

    def __call__(self, text: str) -> str:
        """Return the name."""
        if text not in self.names:
            raise ArgumentTypeError(f"is {_shown(text)}: {did_you_mean(text, self.names)}")
        return text


COUNT = Whole(1)
INDEX = Whole(0)
SEED = Whole(0)
POSITIVE = Real("a number above 0", lambda value: value > 0)
SHARE = Real("a number, at least 0 and below 1", lambda value: 0 <= value < 1)
FINITE = Real("a finite number")
EXPONENT = Real("a number from -10 to 10", lambda value: abs(value) <= 10)
SECONDS = Real(f"a number of seconds above 0, at most {DAY}", lambda value: 0 < value <= DAY)
SHAPE = Shape()


def add_language(parser: Any) -> None:
    """Add the argument --language LANGUAGE."""
    text = "the language of the prose, en or zh; what is not translated appears in English "
    add(parser, "--language LANGUAGE", f"{text}(default: that of the environment)")


def add(parser: Any, usage: str, text: str, kind: Any = None, **settings: Any) -> None:
    """Add an argument to a parser.

    Args:
        parser: The parser of the command, or a group of its arguments.
        usage: The argument as a command line has it: "sentence", "[sentence]" or "[files...]"; or "--json",
            "--out FILE", "--only NAME...", "--valid FILE FILE" or "--write [FILE=INDEX.md]", whose value may
            be left out, and is INDEX.md then.
        text: The help text.
        kind: The type of the value, or the names of which it is one.
        settings: Further settings of `add_argument`, such as the default.
    """
    option, _, value = usage.partition(" ") if usage.startswith("-") else ("", "", usage)
    name = value.strip("[.]")
    if value.endswith("..."):
        settings["nargs"] = "+"
    elif value.startswith("["):
        settings["nargs"] = "*" if value.endswith("...]") else "?"
        if option:
            name, _, settings["const"] = name.partition("=")
    elif " " in name:
        settings["nargs"] = len(name.split())
        name = name.split()[0]
    if option and name:
        settings["metavar"] = name
    elif option and kind is None:
        settings["action"] = "store_true"
    if isinstance(kind, Iterable):
        names = tuple(kind)
        settings = one_of(names) | settings
        if len(settings["metavar"]) > LONGEST_CHOICE:
            settings["metavar"] = (option or name).strip("-").upper()
            text = text if all(each in text for each in names) else f"{text}: {', '.join(names)}"
    elif kind is not None:
        settings["type"] = kind
    parser.add_argument(option or name, help=text, **settings)


def one_of(names: Iterable[str]) -> dict[str, Any]:
    """Return the settings of `add_argument` for an option whose value is one of these names."""
    names = tuple(names)
    return {"type": Choice(names), "metavar": "{" + ",".join(names) + "}"}


def add_backend_argument(parser: Any, *, default: str | None = "auto", shown: str = "auto") -> None:
    """Add --backend.

    Args:
        parser: The parser of the command, or a group of its arguments.
        default: The default of the option.
        shown: The default in the help text.
    """
    names = ("numpy", "cupy", "auto")
    add(parser, "--backend", f"where to compute (default: {shown})", names, default=default)


def _refusal(text: str, wanted: str) -> ArgumentTypeError:
    return ArgumentTypeError(f"is {_shown(text)}: give {wanted}")


def _shown(text: str) -> str:
    """Return a text of the user in quotes, and of a long one the beginning."""
    return repr(text if len(text) <= 40 else f"{text[:37]}...")


# Arguments and the rules of what goes together


class Arguments(Namespace):
    """The arguments of a command.

    Attributes:
        given: The names of the arguments that were really given, even if with their default.
    """

    given: frozenset[str] = frozenset()


Condition = Callable[[Any], object]


@dataclass(frozen=True)
class Rule:
    """Options that have an effect only if a condition holds.

    Attributes:
        options: The options, such as "--seconds", or the names of arguments without dashes.
        holds: The condition, a function of the arguments.
        otherwise: The rest of the sentence that refuses an option; "{option}" stands for the option.
        about: Further options that the condition is about, and whose names the parser must know.
    """

    options: tuple[str, ...]
    holds: Condition
    otherwise: str
    about: tuple[str, ...] = ()


def only_if(options: str, holds: Condition, where: str, remedy: str = "leave it out") -> Rule:
    """Return the rule that options, separated by spaces, have an effect only if a condition holds.

    Args:
        options: The options, such as "--seconds --png".
        holds: The condition, a function of the arguments.
        where: The situation in words, such as "with the action check".
        remedy: What to do.
    """
    return Rule(tuple(options.split()), holds, f"has an effect only {where}: {remedy}")


def needs(options: str, needed: str) -> Rule:
    """Return the rule that options have an effect only beside another option, the one that is needed."""
    return Rule(
        tuple(options.split()),
        lambda arguments: name_of(needed) in arguments.given,
        f"has an effect only with {needed}: give that as well, or leave out {{option}}",
        (needed,),
    )


def excludes(option: str, others: str, because: str) -> Rule:
    """Return the rule that other options have no effect beside an option, with the reason.

    Args:
        option: The option, such as "--resume".
        others: The options that go without effect, separated by spaces.
        because: The reason, a sentence such as "a run has its own data".
    """
    return Rule(
        tuple(others.split()),
        lambda arguments: name_of(option) not in arguments.given,
        f"has no effect with {option}, because {because}: leave out one of them",
        (option,),
    )


def name_of(option: str) -> str:
    """Return the name that the parser gives to an option by default: "batch_size" for "--batch-size"."""
    return option.lstrip("-").replace("-", "_")


# The parser


class _NotGiven:
    """The default of a positional argument while the command line is read."""


_NOT_GIVEN = _NotGiven()


class _Once(Namespace):
    """The arguments while they are read: a second, different value of an option is refused, not preferred.

    Args:
        options: The options by the names of their arguments, such as {"source": "--from"}.
    """

    __slots__ = ("_options",)  # not among the arguments, which are in __dict__

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__()
        object.__setattr__(self, "_options", options)

    def __setattr__(self, name: str, value: Any) -> None:
        before = vars(self).get(name, _NOT_GIVEN)
        if before is not _NOT_GIVEN and before != value and not _appends(before, value):
            raise UserError(
                f"{self._options.get(name, name)} was given twice, with different values: give it once"
            )
        super().__setattr__(name, value)


def _appends(before: Any, after: Any) -> bool:
    """Return whether a list is another one with one more item, as options make that may be repeated."""
    return isinstance(before, list) and isinstance(after, list) and after[:-1] == before


class Parser(argparse.ArgumentParser):
    """A parser whose errors are a UserError of one sentence, and which knows what was given.

    Args:
        prog: The beginning of the command line, such as "npformer train".
        rules: The situations in which options would have no effect.
        settings: The other settings of argparse.ArgumentParser.
    """

    def __init__(self, prog: str, *, rules: Sequence[Rule] = (), **settings: Any) -> None:
        super().__init__(prog=prog, allow_abbrev=False, exit_on_error=False, **settings)
        self.rules = rules

    def name_defaults(self) -> None:
        """Add its default to the help text of each argument that has one, unless the text says it."""
        for action in self._actions:
            default, text = action.default, action.help or ""
            if isinstance(default, bool) or default == argparse.SUPPRESS or "(default" in text:
                continue
            if isinstance(default, (int, float, str)):
                shown = f"{default:g}" if isinstance(default, float) else default
                action.help = f"{text} (default: {shown})"

    def parse(self, argv: Sequence[str]) -> Arguments:
        """Return the arguments on a command line, with the set of those that were given.

        Raises:
            UserError: If an argument is unknown, missing, impossible, or without effect.
        """
        actions = [each for each in self._actions if argparse.SUPPRESS not in (each.default, each.dest)]
        before = [(action, action.default, action.required) for action in actions]
        for action in actions:  # without a default in its place, an argument that is there was given
            action.default = argparse.SUPPRESS if action.option_strings else _NOT_GIVEN
            action.required = False  # an unknown argument, perhaps a misspelt one, is to be reported first
        options = {each.dest: each.option_strings[-1] for each in actions if each.option_strings}
        try:
            found, unknown = self.parse_known_args(argv, _Once(options))
        except argparse.ArgumentError as error:
            raise UserError(self._sentence(error)) from None
        finally:
            for action, default, required in before:
                action.default, action.required = default, required
        if unknown:
            raise UserError(self._unknown(unknown))
        values = {name: value for name, value in vars(found).items() if value is not _NOT_GIVEN}
        for action in actions:
            # argparse calls an argument that takes any number of values required, too
            if action.required and action.nargs != argparse.ZERO_OR_MORE and action.dest not in values:
                what = f"{self.prog} needs the argument {action.metavar or action.dest}"
                raise UserError(f"{what}: {self.prog} --help describes it")
        arguments = Arguments(**{action.dest: _default(action) for action in actions} | values)
        arguments.given = frozenset(values)
        self.check(arguments)
        return arguments

    def check(self, arguments: Arguments) -> None:
        """Raise UserError for the first option that a rule refuses."""
        names = {option: action.dest for action in self._actions for option in action.option_strings}
        names |= {action.dest: action.dest for action in self._actions if not action.option_strings}
        for rule in self.rules:
            assert all(name in names for name in rule.about), f"{self.prog} has not all of {rule.about}"
            for option in rule.options:
                if names[option] in arguments.given and not rule.holds(arguments):
                    shown = option if option.startswith("-") else _first(getattr(arguments, names[option]))
                    raise UserError(f"{shown} {rule.otherwise.replace('{option}', shown)}")

    def error(self, message: str) -> NoReturn:
        """Raise UserError for any other mistake that argparse finds."""
        raise UserError(f"{message}: {self.prog} --help describes all arguments")

    def _sentence(self, error: argparse.ArgumentError) -> str:
        """Return the sentence for an error that argparse found."""
        name, message = error.argument_name, str(error.message)
        if name is None:
            self.error(message)
        if message.startswith("expected "):
            number = message.removeprefix("expected ")
            return f"{name} needs {number}: {self.prog} --help describes it"
        if message.startswith("ignored explicit argument"):
            return f"{name} takes no value: leave out the = and what follows it"
        return f"{name} {message}"

    def _unknown(self, unknown: list[str]) -> str:
        """Return the sentence for arguments that the command does not have."""
        argument = next((each for each in unknown if each.startswith("-")), unknown[0])
        option = argument.partition("=")[0]
        known = [each for action in self._actions for each in action.option_strings]
        near = nearest(option, known) if option.startswith("-") and len(option) > 2 else None
        hint = f"did you mean {near}?" if near else f"{self.prog} --help lists all arguments"
        return f"{self.prog} has no argument {_bare(argument)}: {hint}"


def _default(action: argparse.Action) -> Any:
    """Return the value of an argument that was not given: an empty list for one that takes any number."""
    return [] if action.default is None and action.nargs == argparse.ZERO_OR_MORE else action.default


def _bare(text: str) -> str:
    """Return a text of the user without quotes if it is printable, and otherwise with its escapes."""
    return text if text.isprintable() and len(text) <= 40 else _shown(text)


def _first(value: Any) -> str:
    """Return the text of a positional argument, or of the first one of several."""
    return _bare(str(value[0] if isinstance(value, list) else value))
