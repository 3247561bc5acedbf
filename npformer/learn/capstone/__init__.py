"""The capstone: a Transformer that is assembled from the functions of the learner's solved exercises."""
