"""Small setups of the benchmark, results of measurements, and a clock that the test advances."""

from dataclasses import replace

from npformer.bench.setups import GPTSetup, Setup

TOY = Setup("toy", 8, 12, 2, 2, 30, 4, 7, tied=False)  # with fewer tokens in its sources than targets
TIED = replace(TOY, tied=True)
GPT_TOY = GPTSetup("gpt toy", 8, 2, 2, 3, 6, vocab_size=11)


class Clock:
    """A stand-in for the module time whose clock the test advances."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now
