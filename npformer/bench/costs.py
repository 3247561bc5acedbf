"""The growth of time and memory with the length and the number of sentences."""

import math
import statistics
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.bench.measure import time_steps
from npformer.bench.own_step import own_step
from npformer.bench.setups import DROPOUT, SETUPS, Setup
from npformer.kernels import plain_pairs
from npformer.nn.attention import MultiHeadAttention

LENGTHS = (16, 32, 64, 128, 256, 512, 1024)
BATCHES = (4, 8, 16, 32, 64, 128, 256)
# the number of sentences while the length grows, and the length while the number of sentences grows
SENTENCES, LENGTH = 2, 16
