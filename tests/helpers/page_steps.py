"""What tests read from pages of the explorer: the steps of a recorded page, and when a page has a state."""


class Steps:
    """The steps of the data of a recorded page, by path, as triples of step, values and gradient."""

    def __init__(self, data):
        arrays = iter(data.arrays)
        self.all = []
        for step in data.head["steps"]:
            value = next(arrays)
            grad = next(arrays) if step["grad"] else None
            assert list(value.shape) == step["shape"]
            assert grad is None or grad.shape == value.shape
            self.all.append((step, value, grad))
        assert next(arrays, None) is None
        self.by_path = {step["path"]: (step, value, grad) for step, value, grad in self.all}
        self.by_path |= {name: self.all[index] for name, index in data.head["aliases"].items()}

    def value(self, path):
        return self.by_path[path][1]

    def grad(self, path):
        return self.by_path[path][2]


def wait_until_ready(page, frame=None):
    """Wait until the module of a page, or of a frame in it, has run."""
    wait_until(page, "'npformer' in window", frame)


def wait_until_generated(page):
    """Wait until the model's output, which follows a change after a moment, is computed and drawn."""
    wait_until(page, "!npformer.explorer.timer")


def wait_until(page, condition, frame=None):
    """Wait until an expression of JavaScript is true on a page, or in a frame of it.

    playwright's wait_for_function needs eval, which the policy of the page forbids.
    """
    for _ in range(1000):
        if (frame or page).evaluate(condition):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"this did not become true on the page: {condition}")
