"""TrainingConfig, presets and schedules, and the data loader of a configuration."""

import json

import numpy as np
import pytest
from training_worker import tiny_training

from npformer import Module, UserError
from npformer.models.gpt import GPTConfig
from npformer.models.vit import ViTConfig
from npformer.nn import Linear
from npformer.training import TrainingConfig, make_optimizer, make_schedule
from npformer.training.optimizer import Adam, AdamW, Muon


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"steps": None}, "neither steps nor epochs is given"),
        ({"steps": 5, "epochs": 5}, "both steps and epochs are given"),
        ({"batch_size": None}, "neither batch_size nor batch_tokens"),
        ({"steps": 0}, "steps is 0: it must be a whole number, 1 or more"),
        ({"steps": 2.5}, "steps is 2.5"),
        ({"log_every": True}, "log_every is True"),
        ({"accumulate": -1}, "accumulate is -1"),
        ({"learning_rate": 0}, "learning_rate is 0: it must be a number above 0"),
        ({"eps": float("inf")}, "eps is inf"),
        ({"weight_decay": -0.1}, "weight_decay is -0.1: it must be a number of at least 0"),
        ({"r_drop": -1.0}, "r_drop is -1.0: it must be a number of at least 0"),
        ({"min_learning_rate": float("nan")}, "min_learning_rate is nan: it must be a number of at least 0"),
        (
            {"schedule": "cosine", "learning_rate": 0.01, "min_learning_rate": 0.1},
            "min_learning_rate is 0.1 and learning_rate is 0.01",
        ),
        ({"clip_norm": -1.0}, "clip_norm is -1.0"),
        ({"factor": "big"}, "factor is 'big'"),
        ({"betas": (0.9,)}, "betas is"),
        ({"betas": (0.9, 1.0)}, "betas is"),
        ({"decay_share": 1.0}, "decay_share is 1.0: it must be at least 0 and below 1"),
        ({"average_every": None}, "average_every is None"),
        ({"schedule": "linear"}, "schedule is 'linear': choose one of warmup, constant, cosine"),
        ({"optimizer": "adamw"}, "optimizer is 'adamw': choose one of adam, muon"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": True}, "seed is True: it must be a whole number, 0 or more"),
        ({"learning_rate": None}, "learning_rate is None: it must be a number above 0"),
        ({"factor": None}, "factor is None"),
        ({"eps": None}, "eps is None"),
        ({"momentum": 0.9}, "a TrainingConfig has no setting 'momentum'"),
    ],
)
def test_invalid_settings_are_refused(changes, sentence):
    with pytest.raises(UserError, match=sentence):
        TrainingConfig(steps=10, batch_size=4).replace(**changes)


@pytest.mark.parametrize(
    ("config", "settings"),
    [
        (TrainingConfig, {"steps": np.int64(3), "batch_size": 2, "betas": (np.float32(0.5), 0.5)}),
        (
            TrainingConfig,
            {"steps": 3, "batch_size": 2, "seed": np.uint8(1), "learning_rate": np.float32(0.1)},
        ),
        (GPTConfig, {"vocab_size": np.int64(9), "dropout": np.float16(0.5), "tied": np.bool_(False)}),
        (ViTConfig, {"image_size": (np.int64(8), 8), "patch_size": [np.int64(4), 4]}),
    ],
)
def test_numbers_of_numpy_become_those_of_python(config, settings):
    written = json.loads(json.dumps(config(**settings).to_dict()))
    assert config(**written) == config(**settings)


def test_the_optimizer_of_a_configuration():
    layer, block = Linear(2, 2), Module()
    block.layers = [Linear(2, 2)]
    assert type(make_optimizer(tiny_training(optimizer="muon"), block)) is Muon
    assert type(make_optimizer(tiny_training(), layer)) is Adam
    optimizer = make_optimizer(tiny_training(weight_decay=0.1, betas=(0.8, 0.9), eps=1e-7), layer)
    assert type(optimizer) is AdamW
    assert (optimizer.weight_decay, optimizer.betas, optimizer.eps) == (0.1, (0.8, 0.9), 1e-7)


def test_the_last_share_of_the_steps_decays_to_zero():
    """The peak is at step 4, the rate falls as 1 / sqrt(s) to step 80 and then linearly to 0 at step 100."""
    schedule = make_schedule(
        tiny_training(schedule="warmup", warmup_steps=4, factor=1.0, decay_share=0.2), 16, 100
    )
    # d^-.5 = 1/4, and 4^-1.5 = 1/8
    assert [schedule(s) for s in (1, 2, 4, 16, 64)] == [1 / 32, 1 / 16, 1 / 8, 1 / 16, 1 / 32]
    at_80 = 80**-0.5 / 4
    assert [schedule(s) for s in (80, 85, 90, 95, 100)] == pytest.approx(
        [at_80, 0.75 * at_80, 0.5 * at_80, 0.25 * at_80, 0.0], rel=1e-14
    )
    assert schedule(100) == 0
    constant = make_schedule(tiny_training(learning_rate=0.5, decay_share=0.25), 64, 8)
    assert [constant(s) for s in range(1, 9)] == [0.5] * 6 + [0.25, 0]
