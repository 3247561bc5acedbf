"""The functions that npformer uses, with the arguments that both CuPy 13 and CuPy 14 accept.

A name is followed by its parameters in order: `x!` is a device array, `x?` a device array or a scalar, `x+` a
list or tuple of device arrays, and `x` a value on the host (an axis, a shape, an option). Parameters after
`*` are keyword-only. Arguments such as `where=`, `initial=` and `mode=`, which NumPy has and CuPy lacks, are
refused.
"""

ARRAYS = """
    sum a! axis dtype out! keepdims
    prod a! axis dtype out! keepdims
    mean a! axis dtype out! keepdims
    max a! axis out! keepdims
    min a! axis out! keepdims
    all a! axis out! keepdims
    any a! axis out! keepdims
    argmax a! axis * out! keepdims
    argmin a! axis * out! keepdims
    argsort a! axis kind
    cumsum a! axis dtype out!
    clip a! a_min? a_max? out!
    ravel a! order
    transpose a! axes
    swapaxes a! axis1 axis2
    squeeze a! axis
    broadcast_to array! shape
    repeat a! repeats axis
    split ary! indices_or_sections axis
    concatenate tup+ axis out! * dtype casting
    stack tup+ axis out! * dtype casting
    tril m! k
    where condition! x? y?
    nonzero a!
    flatnonzero a!
    argwhere a!
    matmul x1! x2! out! * dtype casting
    dot a! b! out!
    vdot a! b!
"""


def parse(table):
    """Return {function: (names of positional parameters, {name: mark})}."""
    parsed = {}
    for line in table.strip().splitlines():
        name, *words = line.split()
        star = words.index("*") if "*" in words else len(words)
        marks = {word.rstrip("!?+"): word[len(word.rstrip("!?+")) :] for word in words if word != "*"}
        parsed[name] = list(marks)[:star], marks
    return parsed
