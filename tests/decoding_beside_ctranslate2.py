"""Translate a file with the shipped translator, here and in CTranslate2, and compare the processor time.

    python tests/decoding_beside_ctranslate2.py test.en [--rounds N] [--beams 1 5] [--batch-tokens N]

CTranslate2 (`pip install ctranslate2`) gets the weights of en-de in float32 and the same batches, sorted by
length. The two programs take turns, each in a process of its own with one thread. The processor time is that
of the translation alone, from ids to ids, without imports and loading. The table has the medians of the
rounds, and of the ratios within each round. The greedy translations must be the same; those of a beam need
not be, since the two searches end by different rules. The exit status is 1 if more than 1 in 100 greedy
translations differ, or if a ratio is above --most.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from npformer.bench.machine import describe
from npformer.bench.measure import THREADS
from npformer.data import UNK, read_lines
from npformer.generation.batch_decode import BATCH_TOKENS, batches_by_length, translate_ids
from npformer.generation.search import LENGTH_PENALTY, usual_limits
from npformer.pretrained import load

MODEL = "en-de"
LARGEST_SHARE = 0.01  # of greedy translations that may differ: nearly equal logits are rounded differently


def open_npformer(folder, sources, batch_tokens):
    """Return a function from a beam to the translations, lists of ids, and another one that loads nothing."""
    model = load(MODEL).model

    def translate(beam):
        return translate_ids(model, sources, beam=beam, threads=1, batch_tokens=batch_tokens)

    return translate


def open_ctranslate2(folder, sources, batch_tokens):
    """Return what open_npformer returns, by CTranslate2. A token is the text of its id."""
    import ctranslate2

    translator = ctranslate2.Translator(
        str(folder), device="cpu", compute_type="float32", inter_threads=1, intra_threads=1
    )
    config = load(MODEL).model.config
    texts = [[str(token) for token in ids] for ids in sources]
    limits = usual_limits(config, sources)
    never = [[str(token)] for token in (config.pad_id, config.start_id, UNK)]

    def translate(beam):
        found = {}
        for batch in batches_by_length(sources, batch_tokens // beam, config.end_id):
            results = translator.translate_batch(
                [texts[index] for index in batch],
                beam_size=beam,
                length_penalty=LENGTH_PENALTY,
                max_batch_size=0,  # the batch as it is
                max_input_length=0,
                max_decoding_length=int(limits[batch].max()),
                min_decoding_length=1,
                suppress_sequences=never,
            )
            found |= zip(batch, (result.hypotheses[0] for result in results), strict=True)
        # one limit holds for a whole batch here, and npformer has one for each sentence
        return [[int(token) for token in found.get(i, [])][: limits[i]] for i in range(len(sources))]

    return translate


PROGRAMS = {"npformer": open_npformer, "ctranslate2": open_ctranslate2}


def convert(model, folder):
    """Write the weights of a Transformer as a model of CTranslate2, whose tokens are the texts of the ids.

    The model has rotary positions, in the layout "halves".
    """
    from ctranslate2.specs import transformer_spec

    config = model.config
    sizes = (config.n_layers, config.n_heads)
    rotation = {"rotary_dim": config.head_key, "rotary_interleave": False}
    encoder = transformer_spec.TransformerEncoderSpec(*sizes, **rotation)
    decoder = transformer_spec.TransformerDecoderSpec(*sizes, **rotation)
    # an encoder of CTranslate2 adds positions in any case
    encoder.position_encodings.encodings = np.zeros((config.max_length, config.d_model), np.float32)
    spec = transformer_spec.TransformerSpec(encoder, decoder)
    for stack_spec, stack, embedding in (
        (spec.encoder, model.encoder, model.source),
        (spec.decoder, model.decoder, model.target),
    ):
        tokens = stack_spec.embeddings
        for table in tokens if isinstance(tokens, list) else [tokens]:
            table.weight = embedding.tokens.weight.value
        copy_norm(stack_spec.layer_norm, stack.norm)
        for layer_spec, layer in zip(stack_spec.layer, stack.layers, strict=True):
            copy_layer(layer_spec, layer)
    spec.decoder.projection.weight = model.target.tokens.weight.value
    tokens = [str(token) for token in range(config.target_vocab)]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.unk_token, spec.config.eos_token = str(UNK), str(config.end_id)
    spec.config.bos_token = spec.config.decoder_start_token = str(config.start_id)
    spec.config.layer_norm_epsilon = config.norm_eps
    spec.validate()
    spec.optimize(quantization="float32")
    folder.mkdir()
    spec.save(str(folder))


def copy_layer(spec, layer):
    """Copy an encoder layer or a decoder layer."""
    attention = layer.self_attention
    copy_linear(spec.self_attention.linear[0], attention.query, attention.key, attention.value)
    copy_linear(spec.self_attention.linear[1], attention.output)
    copy_norm(spec.self_attention.layer_norm, layer.norm1)
    if hasattr(layer, "cross"):
        copy_linear(spec.attention.linear[0], layer.cross.query)
        copy_linear(spec.attention.linear[1], layer.cross.key, layer.cross.value)
        copy_linear(spec.attention.linear[2], layer.cross.output)
        copy_norm(spec.attention.layer_norm, layer.norm2)
    copy_linear(spec.ffn.linear_0, layer.feed_forward.inner)
    copy_linear(spec.ffn.linear_1, layer.feed_forward.outer)
    copy_norm(spec.ffn.layer_norm, layer.norm3 if hasattr(layer, "cross") else layer.norm2)


def copy_linear(spec, *layers):
    """Copy linear layers side by side, as one fused layer. CTranslate2 stores a weight as (out, in)."""
    spec.weight = np.concatenate([layer.weight.value.T for layer in layers])
    spec.bias = np.concatenate([layer.bias.value for layer in layers])


def copy_norm(spec, norm):
    """Copy a layer norm."""
    spec.gamma, spec.beta = norm.gain.value, norm.bias.value


def measure(program, arguments):
    """Translate with each beam in this process. Return the seconds and the translations, beam by beam."""
    sources = json.loads(Path(arguments.sources).read_text())
    translate = PROGRAMS[program](Path(arguments.folder), sources, arguments.batch_tokens)
    translate(1)  # once before the measurement, so that all memory has been used before
    results = {}
    for beam in arguments.beams:
        start = time.process_time()
        translations = translate(beam)
        results[beam] = {"seconds": time.process_time() - start, "translations": translations}
    return results


def run_child(program, arguments, folder, sources):
    """Return the results of a program, measured in a process of its own."""
    command = [sys.executable, __file__, str(arguments.text), "--child", program, "--folder", str(folder)]
    command += ["--sources", str(sources), "--batch-tokens", str(arguments.batch_tokens)]
    command += ["--beams", *map(str, arguments.beams)]
    environment = os.environ | dict.fromkeys(THREADS, "1")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{program} failed:\n{done.stderr}")
    return {int(beam): result for beam, result in json.loads(done.stdout.splitlines()[-1]).items()}


def print_row(beam, rounds):
    """Print the row of a beam. Return the median ratio and the share of translations that differ."""
    ours, theirs = ([each[program][beam]["seconds"] for each in rounds] for program in PROGRAMS)
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    texts = [rounds[0][program][beam]["translations"] for program in PROGRAMS]
    differ = sum(a != b for a, b in zip(*texts, strict=True))
    print(
        f"{'greedy' if beam == 1 else f'beam {beam}':8} {statistics.median(ours):9.2f} s "
        f"{statistics.median(theirs):11.2f} s   {statistics.median(ratios):.2f} "
        f"({min(ratios):.2f}, {max(ratios):.2f})   {differ} of {len(texts[0])}"
    )
    return statistics.median(ratios), differ / len(texts[0])


def compare(arguments, work):
    """Run the rounds and print the table. Return the exit status."""
    loaded = load(MODEL)
    sources = [loaded.source_ids(line) for line in read_lines(arguments.text)]
    (work / "sources.json").write_text(json.dumps(sources))
    convert(loaded.model, work / "ctranslate2")
    rounds = [
        {name: run_child(name, arguments, work / "ctranslate2", work / "sources.json") for name in PROGRAMS}
        for _ in range(arguments.rounds)
    ]
    machine = describe()["machine"]
    print(f"{len(sources)} sentences, medians of {arguments.rounds} rounds, {machine['cpu']}")
    print(f"{'':8} {'npformer':>11} {'CTranslate2':>13}   ratio (lowest, highest)   translations that differ")
    failed = False
    for beam in arguments.beams:
        ratio, share = print_row(beam, rounds)
        failed |= ratio > arguments.most or (beam == 1 and share > LARGEST_SHARE)
    return int(failed)


def main():
    """Compare, or measure one program. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", help="a file with one English sentence on each line, plain or gzip")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--batch-tokens", type=int, default=BATCH_TOKENS)
    parser.add_argument("--most", type=float, default=1.5, help="the largest ratio (default: 1.5)")
    parser.add_argument("--child", choices=PROGRAMS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--sources", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(measure(arguments.child, arguments)))
        return 0
    with tempfile.TemporaryDirectory() as name:
        return compare(arguments, Path(name))


if __name__ == "__main__":
    sys.exit(main())
