"""Damaged and forged files of every format: each is refused in one sentence, or read with the same result.

A file with the progress of a learner is not refused, but a copy of it is kept.
A file without a checksum, such as the log of a run, may also read as another file of the right form, when
damage turns one digit into another.
"""

import collections
import dataclasses
import json
from typing import ClassVar

import damage
import numpy as np
import pytest
import toy_pretrained
from training_worker import tiny_dataset, tiny_run

from npformer import UserError
from npformer.cli.pretrained import read_card
from npformer.data.codecs import codec_from_json
from npformer.data.dataset import open_dataset
from npformer.learn.course.progress import LessonProgress, load_progress, save_progress, state_file
from npformer.learn.tasks.folder import NOTE, Folder
from npformer.pretrained import Translator, load, save_pretrained
from npformer.storage.checkpoint import load_checkpoint
from npformer.storage.checksummed import read_checksummed
from npformer.training import RunFolder, TrainingConfig, read_log
from npformer.training.resume_checks import load_last

SAMPLE = 7  # every seventh file, and all of them every night


class Checkpoints:
    """The last checkpoint of a run."""

    checksum = True
    key = "npformer"

    def __init__(self, folder):
        run = folder / "run"
        tiny_run(run, steps=3, clip_norm=1.0)
        self._remember(run / "last.safetensors")

    def _remember(self, file):
        self.file, self.original = file, file.read_bytes()
        self.tensors, self.settings = read_checksummed(file, key=self.key)
        del self.settings["sha256"]

    def files(self, rng):
        yield from damage.damaged(self.original, rng, 60)
        tensors, settings = self.tensors, self.settings
        forged = [*damage.forged_values(settings, optional=self.optional), *damage.forged_versions(settings)]
        for kind in ("gpt", "Transformer", ""):
            forged.append((f"kind {kind}", settings | {"kind": kind}))
        model = settings["model"]
        for name, value in model.items():
            if type(value) is int:
                for size in (0, -1, 10**5, 10**9):
                    forged.append((f"{name} {size}", settings | {"model": model | {name: size}}))
        for name, content in forged:
            yield name, damage.with_checksum(tensors, content, self.key)
        for name, arrays in damage.forged_arrays(tensors):
            yield name, damage.with_checksum(arrays, settings, self.key)

    # the description of the dataset has its own test below
    optional = ("format", "kind", "workers", "ranks", "n", "length", "vocab", "seed", "task")

    def read(self):
        """Return translations, and what resuming needs."""
        checkpoint = load_last(RunFolder(self.file.parent))
        TrainingConfig.from_checkpoint(checkpoint)
        return _translations(Translator.from_checkpoint(checkpoint))


class Exported(Checkpoints):
    """A file that npformer pretrained --export wrote."""

    key = "npformer translator"
    optional = ("format", "step", "training", "example", "beam", "length_penalty", "scores")

    def __init__(self, folder):
        run = folder / "run"
        tiny_run(run, steps=3)
        file = folder / "toy.safetensors"
        save_pretrained(load_checkpoint(run / "last.safetensors"), file, toy_pretrained.toy_card())
        self._remember(file)

    def read(self):
        return _translations(load(str(self.file)))


class Texts:
    """A file without a checksum. A subclass sets its content, a JSON value, and reads it."""

    checksum = False
    optional = ()
    key = "format"

    def __init__(self, folder):
        self.folder = folder
        self.original = json.dumps(self.content).encode()
        self.file = folder / "file.json"

    def files(self, rng):
        yield from damage.damaged(self.original, rng)
        forged = [
            *damage.forged_values(self.content, optional=self.optional),
            *damage.forged_versions(self.content, self.key),
            *((f"{name} alone", value) for name, value in damage.OTHERS.items()),
            *((f"{name} alone", name) for name in damage.TEXTS),
        ]
        for name, content in forged:
            yield name, damage.to_json(content).encode()


class Cards(Texts):
    """A model card."""

    content = json.loads(json.dumps(toy_pretrained.toy_card().to_dict() | {"beam": 5}))
    optional = ("format", "example", "beam", "length_penalty", "scores")

    def __init__(self, folder):
        self.content = {name: value for name, value in self.content.items() if name != "scores"}
        super().__init__(folder)

    def read(self):
        return read_card(str(self.file), [])


class Scores(Texts):
    """The output of npformer score --json."""

    content: ClassVar = toy_pretrained.MEASURED | {"format": 1, "weights": "0123456789ab"}
    optional = ("format",)

    def __init__(self, folder):
        super().__init__(folder)
        self.card = folder / "card.json"
        self.card.write_text(json.dumps(toy_pretrained.FIELDS))

    def read(self):
        return read_card(str(self.card), [str(self.file)])


class Codecs(Texts):
    """A codec of whole words."""

    content = json.loads(tiny_dataset().source.to_json())

    def read(self):
        codec = codec_from_json(self.file.read_bytes().decode(errors="surrogateescape"))
        return codec, codec.encode("3 1 x")


class SubwordCodecs(Codecs):
    """A codec of subwords."""

    content = json.loads(toy_pretrained.toy_codec("de").to_json())


class Descriptions(Texts):
    """The description of a dataset, which is a part of a checkpoint."""

    content: ClassVar = {"kind": "task", "task": "copy", "n": 20, "length": 4, "vocab": 9}
    optional = ("task", "n", "length", "vocab")

    def read(self):
        try:
            content = json.loads(self.file.read_bytes(), parse_float=_number, parse_constant=_number)
        except (ValueError, RecursionError):
            raise UserError("not JSON: the checkpoint has refused it before") from None
        return open_dataset(content).fingerprint


def _number(text):
    raise ValueError


class Files(Descriptions):
    """The description of a dataset of text files."""

    optional = ("valid", "test", "max_length", "limit", "min_count", "text", "shared", "lowercase")

    def __init__(self, folder):
        (folder / "a.en").write_text("one two\nthree four\n" * 20)
        (folder / "a.fr").write_text("un deux\ntrois quatre\n" * 20)
        source, target = str(folder / "a.en"), str(folder / "a.fr")
        self.content = {"kind": "files", "source": source, "target": target, "valid": [source, target]}
        self.content |= {"max_length": 9, "limit": 30, "min_count": 1, "shared": False, "lowercase": True}
        self.content |= {"text": "raw"}
        super().__init__(folder)


class Logs:
    """The log of a run, read as by npformer curves, and repaired as by npformer train --resume."""

    checksum = False

    def __init__(self, folder):
        run = folder / "run"
        tiny_run(run, steps=6)
        self.file = run / "log.jsonl"
        self.original = self.file.read_bytes()

    def files(self, rng):
        yield from damage.damaged(self.original, rng, 40)
        lines = self.original.split(b"\n")[:-1]
        for number in (1, 3, len(lines) - 1):
            entry = json.loads(lines[number])
            others = tuple(entry.keys() - {"step", "seconds"})
            for name, content in damage.forged_values(entry, optional=others):
                changed = [*lines[:number], damage.to_json(content).encode(), *lines[number + 1 :], b""]
                yield f"line {number}: {name}", b"\n".join(changed)
        for name, content in damage.forged_versions({}):
            yield name, b"\n".join([damage.to_json(content).encode(), *lines[1:], b""])

    def read(self):
        return read_log(self.file.parent)


class Progress(Texts):
    """The reader's progress in the lessons."""

    content: ClassVar = {"version": 1, "last": "05_x", "lessons": {}}
    content["lessons"] |= {"05_x": {"step": 3, "steps": 20, "done": False}}
    content["lessons"] |= {"00_y": {"step": 0, "steps": 9, "done": True}}
    optional = ("version", "last", "lessons", "05_x", "00_y", "step", "steps", "done")
    key = "version"

    def __init__(self, folder):
        super().__init__(folder)
        self.file = state_file()
        self.file.parent.mkdir(parents=True)

    def read(self):
        found, before = load_progress(), self.file.read_bytes()
        saved = save_progress("09_z", LessonProgress(1, 2))
        assert saved.done
        assert load_progress() == found | {"09_z": LessonProgress(1, 2)}
        lessons = {name: dataclasses.asdict(progress) for name, progress in found.items()}
        require_kept(self.file, before, lambda content: content.get("lessons", {}) == lessons)
        return found


class Notes(Texts):
    """The note of the tasks that a learner has solved."""

    content: ClassVar = {"format": 1, "current": "05_x", "solved": ["05_x", "06_y"], "hints": {"05_x": 2}}
    optional = ("format", "current", "solved", "hints", "05_x")

    def __init__(self, folder):
        super().__init__(folder)
        self.file = folder / NOTE

    def read(self):
        folder = Folder(self.folder)
        found, before = folder._note.read(), self.file.read_bytes()
        folder._update_note(lambda note: note | {"current": "09_z"})
        assert folder._note.read() == found | {"current": "09_z"}
        require_kept(self.file, before, lambda content: found == _without(content, "format"))
        return found


class Kept(Exception):
    """A damaged file was replaced, and a copy of it was kept."""


def require_kept(file, before, is_whole):
    """Raise Kept if a copy of the file was kept, and check that it was kept unless the file was whole."""
    copies = list(file.parent.glob(f"{file.name}.damaged*"))
    if copies:
        (copy,) = copies
        assert copy.read_bytes() == before
        copy.unlink()
        raise Kept
    assert not before or is_whole(json.loads(before))


def _without(content, key):
    return {name: value for name, value in content.items() if name != key}


def _translations(translator):
    return translator.translate(["3 1 4", "7", "2 2 6 0"], beam=1, max_length=6)


FORMATS = [
    *(Checkpoints, Exported, Cards, Scores, Codecs, SubwordCodecs, Descriptions, Files, Logs, Progress, Notes)
]


def outcome(made, data, expected):
    """Return "refused", "kept", "the same", or "another" for a file that is read with another result."""
    made.file.write_bytes(data)
    try:
        found = made.read()
    except UserError as error:
        text = str(error)
        assert "\n" not in text
        assert ": " in text, text
        assert len(text) < 700, text
        return "refused"
    except Kept:
        return "kept"
    return "the same" if found == expected else "another"


def check(made, every, record_property):
    """Check every n-th file of a format, and record the numbers of outcomes."""
    made.file.write_bytes(made.original)
    expected = made.read()
    counts = collections.Counter()
    for number, (name, data) in enumerate(made.files(np.random.default_rng(2017))):
        if number % every == 0 and data != made.original:
            found = outcome(made, data, expected)
            assert not (made.checksum and found == "another"), name
            counts[found] += 1
    record_property("outcomes", dict(counts))
    print(type(made).__name__, dict(counts))
    assert counts["refused"] + counts["kept"] > counts.total() / 3
    return counts


@pytest.mark.parametrize("every", [SAMPLE, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("kind", FORMATS)
def test_damaged_and_forged_files_are_refused_or_read_with_the_same_result(
    kind, every, tmp_path, monkeypatch, record_property
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    check(kind(tmp_path), every, record_property)
