"""Mutants: small changes of the code, drawn at random, which the tests must notice.

python tests/mutation/run.py draws and tries them. Unlike the planted bugs, nobody has chosen them.
"""
