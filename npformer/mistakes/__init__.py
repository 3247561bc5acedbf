"""Repair: find the changes of a user's functions after which all of their results are right.

A pattern of numbers can say that a factor is missing, but not in which line. This package reads the source
of the functions, tries small edits (a sign, an axis, a transpose, another variable, one more factor), and
names the first one after which a goal is reached. The goal of the gradient checker is that all gradients are
correct at two points (gradients.py). The goal of the exercises is that all results of their trials are right.

Source: Weimer et al. 2009 (program repair with code of the same program).
"""
