"""Compare gradcheck with torch.autograd.gradcheck and jax.test_util.check_grads on the same cases.

    PYTHONPATH=tests/helpers python tests/compare_checkers.py torch
    PYTHONPATH=tests/helpers python tests/compare_checkers.py jax

It prints the table of docs/checking-torch-and-jax.md: for each checker, how many of the wrong functions it
found, how many of the right ones it called incorrect, and the processor time.
"""

import importlib
import sys
import time
import warnings

from npformer.checking import gradcheck
from npformer.errors import UserError


def npformer_accepts(case, inputs):
    """Return whether gradcheck of npformer finds no mistake."""
    try:
        return gradcheck(case.thing, *inputs, reference=case.reference, **case.options).ok
    except UserError:
        return False


def torch_accepts(case, inputs, dtype, **options):
    """Return whether torch.autograd.gradcheck finds no mistake. An error counts as a mistake found."""
    import torch

    module = isinstance(case.thing, torch.nn.Module)
    thing = case.thing.to(dtype) if module else getattr(case.thing, "apply", case.thing)
    tensors = [x.to(dtype).requires_grad_() if x.is_floating_point() else x for x in inputs]
    try:
        return torch.autograd.gradcheck(thing, tensors, **options)
    except Exception:  # GradcheckError, and whatever a backward pass raises
        return False


def jax_accepts(case, inputs, dtype, modes):
    """Return whether jax.test_util.check_grads finds no mistake. An error counts as a mistake found."""
    import jax
    from jax.test_util import check_grads

    arrays = jax.tree_util.tree_map(lambda x: x.astype(dtype), inputs)
    try:
        check_grads(case.thing, arrays, order=1, modes=modes)
    except Exception:  # AssertionError, and whatever a rule raises
        return False
    return True


def torch_checkers():
    """Return the checkers of PyTorch functions by name."""
    import torch

    loose = {"eps": 1e-2, "atol": 5e-2, "rtol": 5e-2, "nondet_tol": 5e-2}
    return {
        "npformer gradcheck": npformer_accepts,
        "torch gradcheck, float64": lambda c, x: torch_accepts(c, x, torch.float64),
        "torch gradcheck, float32": lambda c, x: torch_accepts(c, x, torch.float32),
        "torch gradcheck, float32, tolerances 0.05": lambda c, x: torch_accepts(c, x, torch.float32, **loose),
        "torch gradcheck, bfloat16": lambda c, x: torch_accepts(c, x, torch.bfloat16),
        "torch gradcheck, bfloat16, tolerances 0.05": lambda c, x: torch_accepts(
            c, x, torch.bfloat16, **loose
        ),
    }


def jax_checkers():
    """Return the checkers of JAX functions by name."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    return {
        "npformer gradcheck": npformer_accepts,
        "jax check_grads, float64": lambda c, x: jax_accepts(c, x, jnp.float64, ["rev"]),
        "jax check_grads, float32": lambda c, x: jax_accepts(c, x, jnp.float32, ["rev"]),
        "jax check_grads, bfloat16": lambda c, x: jax_accepts(c, x, jnp.bfloat16, ["rev"]),
    }


def main(library):
    """Print the table of one library, and which cases each checker gets wrong."""
    checkers = {"torch": torch_checkers, "jax": jax_checkers}[library]()
    cases = importlib.import_module(f"foreign_{library}_cases").CASES
    wrong = [case for case in cases if case.wrong]
    right = [case for case in cases if not case.wrong]
    print(
        f"| checker | wrong functions found, of {len(wrong)} | right ones rejected, of {len(right)} "
        "| CPU seconds |"
    )
    print("| --- | --- | --- | --- |")
    details = []
    for name, accepts in checkers.items():
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            missed = [case.name for case in wrong if accepts(case, case.inputs())]
            rejected = [case.name for case in right if not accepts(case, case.inputs())]
        seconds = time.process_time() - start
        print(f"| {name} | {len(wrong) - len(missed)} | {len(rejected)} | {seconds:.0f} |", flush=True)
        details.append(
            f"{name}: missed {', '.join(missed) or 'none'}; rejected {', '.join(rejected) or 'none'}"
        )
    print("", *details, sep="\n")


if __name__ == "__main__":
    main(sys.argv[1])
