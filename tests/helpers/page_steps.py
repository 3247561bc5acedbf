"""What tests read from pages of the explorer: the steps of a recorded page, and when a page is ready."""


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
    """Wait until the module of a page, or of a frame in it, has run.

    playwright's wait_for_function needs eval, which the policy of the page forbids.
    """
    for _ in range(500):
        if (frame or page).evaluate("'npformer' in window"):
            return
        page.wait_for_timeout(20)
    raise AssertionError("the module of the page did not run")
