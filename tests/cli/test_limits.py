"""Limits: sizes of models by arithmetic, the memory of the machine, and what is refused before it is used."""

import errno
import os
from types import SimpleNamespace

import pytest
from commands import refused
from hypothesis import example, given
from hypothesis import strategies as st

from npformer.cli import limits, main
from npformer.cli.options import Arguments
from npformer.data.dataset import task_dataset
from npformer.models.recurrent import RecurrentConfig
from npformer.models.recurrent.config import ATTENTIONS, SCORES
from npformer.models.registry import ARCHITECTURES, build
from npformer.models.transformer import TransformerConfig
from npformer.training import TrainingConfig

# the sizes of models

SMALL = st.integers(1, 3)


@st.composite
def transformers(draw):
    """Draw any configuration of a small Transformer that is possible."""
    flags = {
        name: draw(st.booleans())
        for name in ("output_bias", "attention_bias", "attention_output", "fused_projections", "zero_padding")
    }
    heads = draw(SMALL)
    sizes = {"d_model": 2 * heads * draw(SMALL), "n_heads": heads}
    sizes |= {"d_ff": draw(SMALL), "n_layers": draw(SMALL), "decoder_layers": draw(st.none() | SMALL)}
    if flags["attention_output"]:
        sizes |= {"d_head": draw(st.none() | SMALL), "d_value": draw(st.none() | SMALL)}
    vocab = draw(st.integers(5, 9))
    tied = draw(st.sampled_from(["none", "output", "all"]))
    return TransformerConfig(
        **flags,
        **sizes,
        source_vocab=vocab,
        target_vocab=vocab if tied == "all" else draw(st.integers(5, 9)),
        tied=tied,
        norm=draw(st.sampled_from(["post", "pre", "n-da", "-an", "n-dan"])),
        final_norm=True,
        positions=draw(st.sampled_from(["interleaved", "learned", "relative", "none"])),
        max_distance=draw(SMALL),
        max_length=draw(SMALL),
    )


@st.composite
def recurrent(draw):
    """Draw any configuration of a small recurrent translator that is possible."""
    attention = draw(st.sampled_from(ATTENTIONS))
    return RecurrentConfig(
        source_vocab=draw(st.integers(5, 9)),
        target_vocab=draw(st.integers(5, 9)),
        d_model=draw(SMALL),
        d_hidden=2 * draw(SMALL),
        cell=draw(st.sampled_from(["lstm", "gru"])),
        bidirectional=draw(st.booleans()),
        attention=attention,
        score=draw(st.sampled_from(SCORES)),
        feeding=attention not in ("none", "additive") and draw(st.booleans()),
    )


@given(transformers() | recurrent())
@example(ARCHITECTURES.find("gpt-shakespeare"))
def test_the_number_of_parameters_is_that_of_the_model(config):
    assert limits.count_parameters(config) == build(config).count_parameters()


# millions of parameters of the paper's table 3, with a shared vocabulary of 41,096 tokens
TABLE_3 = {"base": 65, "B-dk16": 58, "B-dk32": 60, "C-N2": 36, "C-N4": 50, "C-N8": 80, "C-d256": 28}
TABLE_3 |= {"C-d1024": 168, "C-ff1024": 53, "C-ff4096": 90} | {f"A-h{heads}": 65 for heads in (1, 4, 16, 32)}


@pytest.mark.parametrize("row", TABLE_3)
def test_the_presets_of_the_paper_have_the_parameters_of_its_table_3(row):
    config = TransformerConfig.architecture(f"paper-{row}", source_vocab=41_096, target_vocab=41_096)
    assert round(limits.count_parameters(config) / 1e6) == TABLE_3[row]


ROTARY = {
    "positions": "rotary",
    "max_length": 9000,
    "decoder_layers": 1,
    "source_vocab": 50,
    "target_vocab": 50,
}


@pytest.mark.parametrize("settings", [{}, ROTARY])
def test_the_bytes_of_a_model_are_a_little_below_what_it_takes(settings):
    config = TransformerConfig.architecture("small", **settings)
    model = build(config)
    if config.positions == "rotary":
        rotations = [layer.self_attention.rotary for layer in (*model.encoder.layers, *model.decoder.layers)]
        tables = [table for rotary in rotations for table in (rotary.cos, rotary.sin)]
    else:
        tables = [model.source.positions.table, model.target.positions.table]
    arrays = 2 * (model.values.nbytes + model.grads.nbytes) + sum(table.nbytes for table in tables)
    assert arrays <= limits.model_bytes(config) <= 1.1 * arrays
    with_workers = limits.model_bytes(config, workers=3) - limits.model_bytes(config)
    assert 2 * model.grads.nbytes <= with_workers <= 2.2 * model.grads.nbytes


def test_the_bytes_of_a_step_are_those_of_its_logits_and_ids():
    dataset = task_dataset("copy", n=10)
    config = RecurrentConfig(source_vocab=1000, target_vocab=1000, d_model=2, d_hidden=2)
    sources, targets = dataset.train_lengths.sum(0)
    logits, ids = 4 * targets * 1000, 8 * (sources + 2 * targets)

    def needed(**settings):
        return limits.step_bytes(config, TrainingConfig(steps=1, **settings), dataset)

    assert needed(batch_size=10**9) == 2 * logits + ids
    assert needed(batch_size=5) == needed(batch_tokens=int(targets) // 2) == (2 * logits + ids) // 2
    assert needed(batch_size=10, accumulate=7) == 2 * logits + 7 * ids


# the memory of this machine


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Return a function that writes the files in which Linux describes a machine."""
    monkeypatch.setattr(limits, "PROCESS", tmp_path / "self")
    monkeypatch.setattr(limits, "MEMORY_INFO", tmp_path / "meminfo")
    monkeypatch.setattr(limits, "CGROUPS", tmp_path / "cgroups")

    def write(files):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)

    write({"meminfo": "MemTotal: 9000 kB\nMemAvailable:    8000 kB\nSwapFree: 1000 kB\n"})
    return write


def test_the_free_memory_of_the_machine(machine):
    assert limits.available_memory() == 9000 * 1024


@pytest.mark.parametrize(
    ("group", "folder", "names"),
    [
        ("0::/a/b", "cgroups/a/b", ("memory.max", "memory.current")),
        ("0::/a/b", "cgroups/a", ("memory.max", "memory.current")),
        ("0::/", "cgroups", ("memory.max", "memory.current")),
        ("4:memory:/a", "cgroups/memory/a", ("memory.limit_in_bytes", "memory.usage_in_bytes")),
        ("4:memory:/a", "cgroups/memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")),
    ],
)
def test_the_control_group_of_the_process_and_those_above(machine, group, folder, names):
    machine({"self/cgroup": f"7:cpu:/\n{group}\n", f"{folder}/{names[0]}": "5000\n"})
    machine({f"{folder}/{names[1]}": "3000\n", f"{folder}/memory.stat": "anon 1\ninactive_file 500\n"})
    assert limits.available_memory() == 5000 - 3000 + 500
    machine({f"{folder}/{names[0]}": "max\n"})
    assert limits.available_memory() == 9000 * 1024
    machine({f"{folder}/{names[0]}": "9223372036854771712\n"})  # "no limit" of the older form
    assert limits.available_memory() == 9000 * 1024


def test_a_machine_that_does_not_say_its_memory(machine, tmp_path, monkeypatch):
    (tmp_path / "meminfo").unlink()
    assert limits.available_memory() == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    monkeypatch.setattr(limits, "_machine_memory", lambda: iter(()))
    monkeypatch.setattr(limits, "_address_space", lambda: iter(()))
    assert limits.available_memory() is None
    limits.require_memory(10**30, "anything", "try it")  # nothing is known, so nothing is refused


# what is refused before memory is used


@pytest.fixture
def gigabyte(monkeypatch, tmp_path):
    """Let the machine have one gigabyte."""
    monkeypatch.setattr(limits, "available_memory", lambda: 10**9)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("gigabyte")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("train --task copy --set d_model=2000000000", "a model with 96,000,0"),
        ("train --task copy --set d_ff=1000000000000000000", "GB are free: make it smaller"),
        ("train --task copy --architecture rnn --set d_hidden=1000000", "optimizer, needs"),
        ("train --task copy --workers 1000", "and 1000 workers, needs"),
        ("train --task copy --workers 100000", "--workers is 100000, and this machine has"),
        ("train --task copy --threads 100000", "--threads is 100000, and this machine has"),
        ("train --task copy --batch-size 1000000 --set d_ff=40000", "a training step of a model with"),
        ("train --task copy --set accumulate=9223372036854775807", "a training step of a model with"),
        ("train --task copy --preset jianshu-demo --set epochs=10001", "epochs is 10001: give at most 10000"),
        ("translate --model en-de --beam 10000000 x", "--beam 10000000 needs"),
        ("score a a --model en-de --beam 10000000", "--beam 10000000 needs"),
        ("masks je --pad 100000", "a picture of 100,001 × 100,001 cells has no room for its words"),
        ("masks je --pad 120", "a picture of 121 × 121 cells has no room for its words"),
        ("masks je --cross i --pad 120", "a picture of 1 × 121 cells has no room for its words"),
        ("gradcheck a.py:b --shape 100000,100000", "--shape 100000,100000 needs 320.0 GB of memory"),
        ("bench --workers 100000", "--workers is 100000, and this machine has"),
    ],
)
def test_what_cannot_fit_is_refused_at_once(capsys, tmp_path, arguments, words):
    (tmp_path / "a").write_text("a man\n")
    assert words in refused(capsys, arguments)


# errors that no command expects


def error_of(work):
    """Return the error that some work raises."""
    try:
        work()
    except Exception as error:
        return error


@pytest.fixture
def fails_with(monkeypatch):
    """Return a function that lets every command raise an error."""

    def fail(error):
        def run(arguments):
            raise error

        monkeypatch.setattr(main, "read_command_line", lambda argv: (SimpleNamespace(run=run), Arguments()))

    return fail


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (MemoryError(), "there is not enough memory: use a smaller model, fewer sentences or shorter ones"),
        (MemoryError("Unable to allocate 3 GiB"), "there is not enough memory (Unable to allocate 3 GiB): "),
        (RecursionError("deep"), "the input is nested too deeply: write it with fewer brackets"),
        (OSError(errno.ENOSPC, "No space left on device"), "a file cannot be read or written (No space left"),
        (OSError(errno.EACCES, "Permission denied", "a/b"), "a/b cannot be read or written (Permission"),
        (OSError(errno.EMFILE, "Too many open files", b"a"), "the system allows no more open files (Too man"),
        (OSError(errno.ENAMETOOLONG, "File name too long", "\x1b"), r"\x1b cannot be read or"),
        (error_of(b"ab\xff".decode), "a text is not valid utf-8 (byte 0xff at place 2): convert it to UTF-8"),
        (error_of("a\ud800".encode), r"the character '\ud800' cannot be written as utf-8: leave it out, or"),
    ],
)
def test_an_error_of_the_machine_is_one_sentence(capsys, fails_with, error, sentence):
    fails_with(error)
    assert refused(capsys, "tour").startswith(sentence)


@pytest.mark.parametrize("error", [TypeError("x"), AssertionError("x"), KeyError("x"), OSError("x")])
def test_a_bug_shows_its_traceback(fails_with, error):
    fails_with(error)
    with pytest.raises(type(error)):
        main.main(["tour"])
