"""Small experiments that lessons and commands run and report."""
