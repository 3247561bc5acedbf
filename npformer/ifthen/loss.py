"""The loss of a program: that of its trigger and that of its action."""

from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.ifthen.descriptions import Program


class ProgramLoss:
    """loss = cross-entropy of the trigger + cross-entropy of the action: the function that training lowers.

    Follows the cache protocol, so that gradcheck(ProgramLoss(model), ids, triggers, actions) checks every
    parameter of a whole model at once.
    """

    def __init__(self, model):
        self.model = model

    def named_parameters(self):
        """The model's own names."""
        return self.model.named_parameters()

    def forward(self, ids, triggers, actions):
        """Shapes: integers (B, S), (B,), (B,) -> loss (). Returns (loss, cache)."""
        program, cache = self.model.forward(ids)
        trigger, trigger_cache = cross_entropy(program.trigger, triggers)
        action, action_cache = cross_entropy(program.action, actions)
        return trigger + action, (cache, trigger_cache, action_cache)

    def backward(self, dloss, cache):
        """Adds every parameter's gradient."""
        model_cache, trigger_cache, action_cache = cache
        # loss = trigger + action: a sum hands its gradient to both
        dprogram = Program(
            cross_entropy_backward(dloss, trigger_cache), cross_entropy_backward(dloss, action_cache)
        )
        self.model.backward(dprogram, model_cache)
