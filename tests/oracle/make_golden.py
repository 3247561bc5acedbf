"""Compute with PyTorch the arrays that npformer must reproduce, and write them to golden.npz.

    python tests/oracle/make_golden.py            write the file
    python tests/oracle/make_golden.py --check    compute again and compare with the file

tests/models/test_torch_parity.py reads the file, so the tests do not need PyTorch. All arrays are float64.
The weights have the names and the layout of npformer with fused_projections=True, which is also PyTorch's
layout.
"""

import argparse
import math
import sys
from pathlib import Path

import numpy as np
import torch
from oracle_components import components
from oracle_models import models

GOLDEN = Path(__file__).parent / "golden.npz"
TOLERANCE = 1e-12  # relative to an array's largest entry


def generate():
    """Return all golden arrays by name, such as "post/grad/encoder.norm.gain" or "gelu/dx"."""
    torch.set_default_dtype(torch.float64)
    try:
        arrays = {}
        for group, members in {**components(), **models()}.items():
            arrays.update({f"{group}/{name}": np.asarray(array) for name, array in members.items()})
        return arrays
    finally:
        torch.set_default_dtype(torch.float32)


def differences(stored, computed):
    """Return one sentence for each stored array that differs from the one computed now."""
    for name in sorted(stored.keys() ^ computed.keys()):
        yield f"{name} is {'no longer computed' if name in stored else 'not in the file'}"
    for name in sorted(stored.keys() & computed.keys()):
        old, new = stored[name], computed[name]
        if old.shape != new.shape or old.dtype != new.dtype:
            yield f"{name} is {old.dtype}{old.shape} in the file and {new.dtype}{new.shape} from PyTorch"
        elif (error := relative_error(old, new)) > TOLERANCE:
            yield f"{name} differs by {error:.1e} of its largest entry"


def relative_error(old, new):
    """Return the largest difference relative to the largest entry, or infinity if an entry is NaN."""
    difference = float(np.abs(old.astype(float) - new.astype(float)).max())
    if difference == 0:
        return 0.0
    scale = float(np.abs(old).max())
    return difference / scale if scale > 0 and math.isfinite(difference) else math.inf


def check():
    """Return a sentence about the error in the golden file, or an empty string if there is none."""
    if not GOLDEN.exists():
        return f"{GOLDEN} is missing: run python {Path(__file__).name} to write it"
    with np.load(GOLDEN) as file:
        found = list(differences(dict(file), generate()))
    if not found:
        return ""
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"golden.npz is not what PyTorch {torch.__version__} computes: {found[0]}{more}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare with the file and write nothing")
    if parser.parse_args().check:
        sentence = check()
        print(sentence or f"golden.npz is what PyTorch {torch.__version__} computes")
        return 1 if sentence else 0
    np.savez_compressed(GOLDEN, **generate())
    print(f"wrote {GOLDEN} ({GOLDEN.stat().st_size / 1024:.0f} KiB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
