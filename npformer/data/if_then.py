"""If-then recipes: descriptions such as "Post photos in a Dropbox folder to Instagram", and their programs.

A recipe moves things from one channel to another: its trigger is a new thing in the first channel, and its
action adds the thing to the second one. Every channel can be the first or the second, so the same words in a
different order mean a different program. Some pairs of channels are held out: recipes with both are only in
the test set, so that a model has to learn the meaning of "to", and cannot memorize pairs of channels.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from npformer.data.codecs import TextCodec
from npformer.data.corpus.draws import chance, pick
from npformer.data.corpus.entries import table_rows
from npformer.data.loader import Ids, pad
from npformer.data.tokens import LANGUAGES
from npformer.data.vocabulary import PAD


class Channel(NamedTuple):
    """A service that recipes take things from and add things to."""

    name: str
    container: str  # the word for the place that holds its things: "folder" in "a Dropbox folder"
    things: tuple[str, ...]  # in the singular


def _channels(table: str) -> tuple[Channel, ...]:
    """Return the channels of a table with lines of: name | container | things."""
    return tuple(
        Channel(name, container, tuple(things.split())) for name, container, things in table_rows(table)
    )


CHANNELS = _channels(
    """
    Instagram  | account  | photo video
    Facebook   | page     | photo video post event
    Flickr     | album    | photo video
    Dropbox    | folder   | photo video file song
    OneDrive   | folder   | photo video file
    Twitter    | feed     | photo post article
    Tumblr     | blog     | photo video post
    WordPress  | blog     | photo post article
    Reddit     | feed     | photo post article
    Pocket     | list     | article video
    Feedly     | board    | article post
    Evernote   | notebook | note photo article task
    OneNote    | notebook | note photo task
    YouTube    | playlist | video song
    Spotify    | playlist | song
    SoundCloud | playlist | song
    Trello     | board    | task note file
    Todoist    | project  | task note
    Outlook    | calendar | event task
    Slack      | channel  | message file event
    Gmail      | inbox    | message file
    Telegram   | group    | message photo
    """
)

# {source} and {to} are channels, such as "Instagram" or "my Instagram account"; {from} is the name of the
# source alone. {one}, {an} and {many} are the thing, such as "photo", "a photo" and "new photos". {do} is a
# verb.
TEMPLATES = (
    "{do} {from} {many} to {to}",
    "{do} {many} in {source} to {to}",
    "{do} {many} from {source} to {to}",
    "{do} to {to} {many} from {source}",
    "{do} to {to} {many} in {source}",
    "{do} {many} in {to} from {source}",
    "{do} {from} {many} in {to}",
    "to {to} {do} {many} from {source}",
    "if there is a new {one} in {source} then {do} it to {to}",
    "when I add {an} to {source} {do} it to {to}",
    "{do} it to {to} when I add {an} to {source}",
    "{do} {an} to {to} if it is new in {source}",
)
VERBS = ("save", "post", "send", "copy", "upload", "share", "add", "move")
ADVERBS = ("automatically", "always", "please", "instantly")
BEFORE_THINGS = ("new", "my", "all", "my new", "all new")


@dataclass(frozen=True)
class IfThenRecipe:
    """A description and its program; trigger and action are "channel.function"."""

    description: str
    trigger: str
    action: str

    @property
    def channels(self) -> tuple[str, str]:
        """The channels of trigger and action, in lower case."""
        return self.trigger.partition(".")[0].lower(), self.action.partition(".")[0].lower()


class RecipeCorpus(NamedTuple):
    """Recipes for training and test, without a common description or a common pair of channels."""

    train: tuple[IfThenRecipe, ...]
    test: tuple[IfThenRecipe, ...]


# the two recipes of Liu et al. 2016 have nearly the same words and opposite programs
FAMOUS = (
    IfThenRecipe(
        "Automatically save Instagram photos to a Dropbox folder", "Instagram.new_photo", "Dropbox.add_photo"
    ),
    IfThenRecipe("Post photos in a Dropbox folder to Instagram", "Dropbox.new_photo", "Instagram.add_photo"),
)
TRIGGERS = tuple(f"{channel.name}.new_{thing}" for channel in CHANNELS for thing in channel.things)
ACTIONS = tuple(f"{channel.name}.add_{thing}" for channel in CHANNELS for thing in channel.things)


def recipe_corpus(*, seed: int = 0, train: int = 6000, test: int = 1000) -> RecipeCorpus:
    """Draw recipes from the templates. The same seed gives the same recipes on every machine.

    The test set begins with the two famous recipes.

    Args:
        seed: The seed of the draws.
        train: The number of recipes to train on.
        test: The number of held-out recipes.
    """
    rng = Random(seed)
    test_channels = held_out_pairs(rng)
    for_training: list[IfThenRecipe] = []
    for_test = list(FAMOUS)
    descriptions = {recipe.description for recipe in FAMOUS}
    while len(for_training) < train or len(for_test) < test:
        recipe = draw_recipe(rng)
        if recipe.description not in descriptions:
            (for_test if frozenset(recipe.channels) in test_channels else for_training).append(recipe)
            descriptions.add(recipe.description)
    return RecipeCorpus(tuple(for_training[:train]), tuple(for_test[:test]))


def held_out_pairs(rng: Random) -> set[frozenset[str]]:
    """Return the pairs of channels to hold out: one in six, and the pair of the famous recipes."""
    pairs = [
        frozenset((one.name.lower(), other.name.lower()))
        for i, one in enumerate(CHANNELS)
        for other in CHANNELS[:i]
        if set(one.things) & set(other.things)
    ]
    offset = int(rng.random() * 6)
    held_out = {pair for number, pair in enumerate(pairs) if (number + offset) % 6 == 0}
    return held_out | {frozenset(FAMOUS[0].channels)}


def draw_recipe(rng: Random) -> IfThenRecipe:
    """Draw a recipe: two channels, a thing that both have, and a description."""
    while True:
        source, destination = pick(rng, CHANNELS), pick(rng, CHANNELS)
        things = [thing for thing in source.things if thing in destination.things]
        if source != destination and things:
            break
    thing = pick(rng, things)
    do = pick(rng, VERBS)
    words = {
        "do": f"{pick(rng, ADVERBS)} {do}" if chance(rng, 0.3) else do,
        "from": source.name,
        "source": _place(rng, source),
        "to": _place(rng, destination),
        "one": thing,
        "an": _with_article(thing),
        "many": f"{pick(rng, BEFORE_THINGS)} {thing}s" if chance(rng, 0.4) else f"{thing}s",
    }
    text = pick(rng, TEMPLATES).format(**words)
    return IfThenRecipe(
        text[0].upper() + text[1:], f"{source.name}.new_{thing}", f"{destination.name}.add_{thing}"
    )


def _place(rng: Random, channel: Channel) -> str:
    """Return "Instagram", or "my Instagram account"."""
    if chance(rng, 0.5):
        return channel.name
    container = f"{channel.name} {channel.container}"
    return pick(rng, (_with_article(container), f"my {container}", f"the {container}"))


def _with_article(words: str) -> str:
    """Return "a photo", or "an article"."""
    return f"an {words}" if words[0].lower() in "aeiou" else f"a {words}"


class Examples(NamedTuple):
    """Recipes as numbers: the padded token ids of each description, and the numbers of its two classes."""

    ids: Ids  # (N, S)
    triggers: NDArray[np.int64]  # (N,) indices into TRIGGERS
    actions: NDArray[np.int64]  # (N,) indices into ACTIONS

    def of(self, rows: NDArray[np.int64]) -> "Examples":
        """Return some of the examples, with no more padding than the longest of them needs."""
        ids = self.ids[rows]
        longest = int((ids != PAD).sum(-1).max())
        return Examples(ids[:, :longest], self.triggers[rows], self.actions[rows])


def recipe_codec(recipes: Iterable[IfThenRecipe]) -> TextCodec:
    """Return the codec of the words of the descriptions."""
    return TextCodec.from_lines((recipe.description for recipe in recipes), language=LANGUAGES["en"])


def encode_recipes(recipes: Sequence[IfThenRecipe], codec: TextCodec) -> Examples:
    """Return the recipes as numbers."""
    return Examples(
        pad([codec.encode(recipe.description) for recipe in recipes]),
        np.array([TRIGGERS.index(recipe.trigger) for recipe in recipes]),
        np.array([ACTIONS.index(recipe.action) for recipe in recipes]),
    )
