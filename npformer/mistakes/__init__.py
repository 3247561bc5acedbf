"""One engine for mistakes: a table of changes of code, and the search for one that explains wrong numbers.

A pattern of numbers (patterns.py) can say that a factor is missing, but not in which line. The search reads
the source of the functions and tries small edits (a sign, an axis, a transpose, another variable, one more
factor). It names the first one after which a goal is reached: all gradients are correct
(checking/repair.py), or all results of an exercise are right (learn/exercises/repair.py). The mutants
(mutants.py) go the other way: they make mistakes in a correct solution. Both read the table in operators.py.
The mistakes that many exercises share, with sentences that name their parts, are the table in sentences.py,
which concepts.py applies to every solution.

Source: Weimer et al. 2009 (program repair with code of the same program).
"""
