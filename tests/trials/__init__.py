"""Trials: the tests run on a copy of the package that contains one fault, and some test must fail.

A fault is a planted bug (tests/planted_bugs) or a mutant (tests/mutation). It has a `name`, the `file` in
npformer/ that it changes, a `declaration` that says everything about the change, and a method
`plant(package)`.
"""
