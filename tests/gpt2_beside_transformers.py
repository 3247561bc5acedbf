"""Load a model of the size of GPT-2 small and read its attention, here and in transformers.

    python tests/gpt2_beside_transformers.py [--rounds N] [--tokens T] [--threads N] [--folder FOLDER]

The weights are random: transformers makes the folder, unless one is given. The two programs take turns, each
in a process of its own. Both map the file into memory, and the system has read it before, so that no disk is
measured. npformer reads all numbers when it checks them, and transformers none before its first forward pass.
The table has the medians of the rounds, and of the ratios within each round. The exit status is 1 if the
attention weights differ by more than 1e-5, or if the memory is more than 0.65 of that of transformers.
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

from npformer.bench.machine import describe, peak, resident
from npformer.bench.measure import THREADS

READS = 5  # of the attention in each process: the first one, and the median of the others
LARGEST_DIFFERENCE, LARGEST_MEMORY = 1e-5, 0.65
ROWS = {
    "import": "seconds of the imports",
    "load": "seconds to load",
    "load_processor": "processor seconds to load",
    "first": "seconds of the first attention",
    "both": "seconds to load and of the first attention",
    "processor": "processor seconds of the two",
    "total": "the same with the imports",
    "attention": "seconds of each further attention",
    "peak": "GB of memory at most, the imports included",
    "above_import": "GB of memory at most, beyond the imports",
}


def open_npformer(folder):
    """Return a function from ids (1, T) to attention weights (L, H, T, T)."""
    from npformer import load as load_model

    def load():
        loaded = load_model(folder)
        return lambda ids: loaded.attention(ids)["self"][:, 0]

    return load


def open_transformers(folder):
    """Return what open_npformer returns, by transformers."""
    import torch
    from transformers import GPT2LMHeadModel

    def load():
        model = GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager").eval()

        def attention(ids):
            with torch.no_grad():
                output = model(torch.from_numpy(ids), output_attentions=True)
            return torch.cat(output.attentions).numpy()

        return attention

    return load


PROGRAMS = {"npformer": open_npformer, "transformers": open_transformers}


def measure(program, folder, n_tokens, output):
    """Measure a program in this process, store its attention weights, and return the numbers of ROWS."""
    start = time.perf_counter()
    load = PROGRAMS[program](folder)
    imported, before = time.perf_counter(), resident()
    processor = time.process_time()
    attention = load()
    loaded, load_processor = time.perf_counter(), time.process_time() - processor
    ids = np.random.default_rng(0).integers(0, 50257, (1, n_tokens))
    seconds = []
    for read in range(READS):
        began = time.perf_counter()
        weights = attention(ids)
        seconds.append(time.perf_counter() - began)
        if read == 0:
            processor = time.process_time() - processor
    most = peak()
    np.save(output, weights)
    return {
        "import": imported - start,
        "load": loaded - imported,
        "load_processor": load_processor,
        "first": seconds[0],
        "both": loaded - imported + seconds[0],
        "processor": processor,
        "total": loaded - start + seconds[0],
        "attention": statistics.median(seconds[1:]),
        "peak": most / 1e9,
        "above_import": (most - before) / 1e9,
    }


def run_child(program, arguments, folder, output):
    """Return the numbers of a program, measured in a process of its own."""
    for path in Path(folder).glob("*.safetensors"):
        with path.open("rb") as file:
            while file.read(2**24):
                pass
    command = [sys.executable, __file__, "--child", program, "--output", str(output)]
    command += ["--folder", str(folder), "--tokens", str(arguments.tokens)]
    environment = os.environ | dict.fromkeys(THREADS, str(arguments.threads)) | {"HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{program} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def write_gpt2(folder):
    """Write GPT-2 small with random weights, large enough that attention differs from token to token."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    GPT2LMHeadModel(GPT2Config(initializer_range=0.05)).save_pretrained(folder)


def print_table(results):
    """Print the medians and the ratios. Return the median of the ratios of the memory."""
    ratios = {}
    print(f"{'':46} {'npformer':>10} {'transformers':>13}   ratio (lowest, highest)")
    for name, title in ROWS.items():
        ours, theirs = ([each[name] for each in results[program]] for program in PROGRAMS)
        each = [a / b for a, b in zip(ours, theirs, strict=True)]
        ratios[name] = statistics.median(each)
        print(
            f"{title:46} {statistics.median(ours):10.3f} {statistics.median(theirs):13.3f}   "
            f"{ratios[name]:.2f} ({min(each):.2f}, {max(each):.2f})"
        )
    return ratios["peak"]


def compare(arguments, folder, work):
    """Run the rounds and print the table. Return the exit status."""
    results = {program: [] for program in PROGRAMS}
    for _ in range(arguments.rounds):
        for program in PROGRAMS:
            results[program].append(run_child(program, arguments, folder, work / f"{program}.npy"))
    machine = describe()
    load, versions = machine["machine"]["load"], machine["versions"]
    print(f"{arguments.tokens} tokens, {arguments.threads} threads, medians of {arguments.rounds} rounds")
    print(f"torch {versions['torch']}, NumPy {versions['numpy']}, {load} running processes at the end")
    memory = print_table(results)
    ours, theirs = (np.load(work / f"{program}.npy") for program in PROGRAMS)
    difference = np.abs(ours - theirs).max()
    print(f"largest difference of an attention weight: {difference:.1e}")
    return int(difference > LARGEST_DIFFERENCE or memory > LARGEST_MEMORY)


def main():
    """Compare, or measure one program. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", help="a folder of GPT-2 that is there")
    parser.add_argument("--child", choices=PROGRAMS, help=argparse.SUPPRESS)
    parser.add_argument("--output", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(measure(arguments.child, arguments.folder, arguments.tokens, arguments.output)))
        return 0
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        if not arguments.folder:
            write_gpt2(work / "gpt2")
        return compare(arguments, arguments.folder or work / "gpt2", work)


if __name__ == "__main__":
    sys.exit(main())
