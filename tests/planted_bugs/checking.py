"""Bugs in the checker: ways to refuse a right layer, or to accept a wrong one."""

BUGS = {
    "checking/derivative.py": {
        "return _by_larger_steps(target, directions, best, rounding, shrink)": {
            "checker: no larger steps beside a large constant": "return best"
        },
        "error = distance(wide, narrow) + rounding / h\n        if not": {
            "checker: two differences of 0 agree": "error = distance(wide, narrow)\n        if not"
        },
        "least + float(sides.min(0).sum()), most + float(sides.max(0).sum())": {
            "checker: a kink allows the derivative from above alone": (
                "least + float(sides[1].sum()), most + float(sides[1].sum())"
            )
        },
    },
    "checking/analytic.py": {
        "if noise > SAME * size + 100 * zero_output:": {
            "checker: complex step of another real part": "if False:"
        },
        "return found <= VANISHING * before": {"checker: complex step through the modulus": "return True"},
        "hides_slopes(target, directions, exact) or": {
            "checker: a complex step that sees no slope beside a constant": "False or"
        },
        "or misled_by_stairs(target, directions, exact):": {
            "checker: a complex step on the steps of rounding errors": "or False:"
        },
        "if noise <= size and distance": {"checker: rounding errors confirm a complex step": "if distance"},
    },
    "checking/tensor_rows.py": {
        "(seems_right and hides_slopes(target, directions))": {
            "checker: a gradient of 0 where rounding errors hide the slope": "False"
        },
        "or misled_by_stairs(target, directions)": {"checker: the wrong one of two slopes": ""},
    },
    "checking/properties.py": {
        "hidden = np.inf if misled_by_stairs(target, directions) else hidden": {
            "checker: the wrong one of two slopes at another point": "pass"
        }
    },
    "checking/stairs.py": {
        "return not norm((_vector(rough) - _vector(fine))[steps]) <= norm(least[steps])": {
            "checker: steps of a function are rounding errors": "return True",
            "checker: rounding errors are steps of a function": "return False",
        },
        "self.slope(0.0, short * self.at_scale) for short in SHORT": {
            "checker: no slope on a short way": "self.slope(0.0, self.at_scale) for _ in SHORT"
        },
    },
    "checking/check_target.py": {
        '"give one for each (on the command line, one --shape for each)"': {
            "checker: no word about --shape": '"give one for each"'
        },
        "sizes = np.abs(x)": {"checker: one scale for all entries": "sizes = np.abs(x) * 0"},
    },
    "checking/trees.py": {
        "return largest * float(np.sqrt(sum(float(((part / largest) ** 2).sum()) for part in parts)))": {
            "checker: a norm that overflows": (
                "return float(np.sqrt(sum(float((part**2).sum()) for part in parts)))"
            )
        }
    },
    "checking/draw.py": {
        "units = {n: scales[n] if methods": {
            "checker: directions that do not know the scale": "units = {n: np.ones_like(scales[n]) if methods"
        },
        "return noise / self._size(directions, found[0])": {
            "checker: rounding errors count as mistakes": "return 0.0"
        },
        "return noise / self._size(directions, self.derivative(directions))": {
            "checker: a modulus among rounding errors": "return 0.0"
        },
        'return self._gap(directions, 100 * STEP["difference"]) < 0.3 * gap': {
            "checker: rounding errors are kinks": "return False"
        },
        "all(is_between(v * unit, 10 * slack)[0] for v in several)": {
            "checker: a tie that is counted twice": "True"
        },
    },
    "checking/preparation.py": {
        "if any(np.iscomplexobj(part) for part in leaves(y)):": {
            "checker: an output of complex numbers is checked": "if False:"
        },
        "if not target.given_float32 or not _takes_float32(target):": {
            "checker: a layer that refuses float64 ends in its own error": "if True:"
        },
    },
    "checking/cases/models.py": {
        'yield make_case("multi-head, kdim 4, vdim 5", _multi_head({"kdim": 4, "vdim": 5}), *widths)': {
            "checker: an option without a case": "pass"
        }
    },
    "cli/gradcheck.py": {
        'errors["float32" if "float32" in row.method + row.tensor else "float64"]': {
            "checker: errors of float32 beside those of float64": 'errors["float64"]'
        }
    },
    "checking/check.py": {
        'where = f", with inputs': {"checker: no word about the shapes": 'where = "" and f", with inputs'},
        'off_kinks="difference" in methods.values()': {
            "checker: the adjoint is checked at a tie": "off_kinks=False"
        },
    },
    "checking/situations.py": {
        "target.run_twice_as_long()": {"checker: the state of the last forward pass": "target.run()"},
        "if not error <= max(worst, SAME):": {"checker: layouts of dy are not compared": "if False:"},
        "for lay_out in (np.asfortranarray, lambda": {
            "checker: no dy in the order of columns": "np.asfortranarray → np.ascontiguousarray"
        },
        "if draw.target.given_float32:": {"checker: nothing in float32": "if False:"},
        "found = _gradients(draw, point, np.float32)": {
            "checker: float32 compared in float64": "np.float32 → np.float64"
        },
        "if steady > STEADY:": {"checker: one percent in float32": "if False:"},
        "if norm(parts.mean(0)) > TIMES * spread": {
            "checker: rounding errors of float32 are mistakes": "if norm(parts.mean(0)) > 0 * spread"
        },
    },
}
