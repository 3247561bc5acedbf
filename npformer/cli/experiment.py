"""npformer experiment: repeat an experiment that trains many small models."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from threadpoolctl import threadpool_limits

from npformer.cli.options import add
from npformer.cli.output import print_line
from npformer.escaping import printable
from npformer.learn.experiments import (
    ablation,
    adaptation,
    addition,
    caching,
    experts,
    induction,
    muon,
    recall,
    scaling,
    speculation,
)
from npformer.learn.experiments.measured_runs import Measured, Result
from npformer.storage.atomic import make_folder, require_place

EPILOG = "Example: npformer experiment ablation"
EXPERIMENTS = {
    "ablation": ablation.measure,
    "scaling": scaling.measure,
    "induction": induction.measure,
    "caching": caching.measure,
    "muon": muon.measure,
    "recall": recall.measure,
    "experts": experts.measure,
    "lora": adaptation.measure_lora,
    "quantization": adaptation.measure_quantization,
    "addition": addition.measure,
    "speculation": speculation.measure,
}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add(
        parser,
        "name",
        "ablation: from the decoder layer of 2017 to that of Llama, one part after the other. "
        "scaling: the loss by the number of parameters and of training tokens. "
        "induction: two layers of attention learn to copy, and one does not. "
        "caching: shared heads, latent vectors, QK-norm and windows: the loss by the number of values that a "
        "KV cache keeps for a token. "
        "muon: AdamW and Muon by steps and by time. "
        "recall: how many pairs linear attention, the delta rules and softmax attention remember. "
        "experts: mixtures of experts read four languages, with and without balancing. "
        "lora: a GPT that learns another style with one percent of its parameters. "
        "quantization: a GPT with weights of few bits. "
        "addition: a GPT that adds numbers, fine-tuned on answers and then trained with rewards. "
        "speculation: the tokens of each pass in speculative decoding",
        EXPERIMENTS,
    )
    add(
        parser,
        "--out FILE",
        "the file of the results. If it holds some, the experiment goes on after them "
        "(default: runs/NAME.json)",
    )


def run(arguments: Namespace) -> int:
    """Measure all models, and print the result of each. Return 0."""
    if arguments.out is None:
        make_folder(Path("runs"), advice="go to a folder that may be written to")
    path = Path(arguments.out or f"runs/{arguments.name}.json")
    require_place(path)
    with threadpool_limits(1, user_api="blas"):  # one thread is fastest for matrices this small
        EXPERIMENTS[arguments.name](path, show)
    print_line(f"wrote {printable(path)}")
    return 0


def show(result: Result | Measured) -> None:
    """Print a result in one line."""
    print_line(result.line)
