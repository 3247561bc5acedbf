"""The functions, with the arguments that both CuPy 13 and CuPy 14 accept.

A name is followed by its parameters in order: `x!` is a device array, `x?` a device array or a scalar, `x+` a
list or tuple of device arrays, and `x` a value on the host (an axis, a shape, an option). Parameters after
`*` are keyword-only. Arguments such as `where=`, `initial=` and `mode=`, which NumPy has and CuPy lacks, are
refused.
"""

ARRAYS = """
    sum a! axis dtype out! keepdims
    prod a! axis dtype out! keepdims
    mean a! axis dtype out! keepdims
    var a! axis dtype out! ddof keepdims
    std a! axis dtype out! ddof keepdims
    max a! axis out! keepdims
    min a! axis out! keepdims
    amax a! axis out! keepdims
    amin a! axis out! keepdims
    nanmax a! axis out! keepdims
    nanmin a! axis out! keepdims
    nansum a! axis dtype out! keepdims
    nanmean a! axis dtype out! keepdims
    ptp a! axis out! keepdims
    all a! axis out! keepdims
    any a! axis out! keepdims
    argmax a! axis * out! keepdims
    argmin a! axis * out! keepdims
    median a! axis out! * keepdims
    average a! axis weights! returned * keepdims
    quantile a! q? axis out! * keepdims
    percentile a! q? axis out! * keepdims
    cumsum a! axis dtype out!
    cumprod a! axis dtype out!
    diff a! n axis
    count_nonzero a! axis
    clip a! a_min? a_max? out!
    nan_to_num x! copy nan posinf neginf
    around a! decimals out!
    round a! decimals out!
    real val!
    imag val!
    angle z! deg
    sinc x!
    copy a! order
    reshape a! newshape order
    ravel a! order
    transpose a! axes
    swapaxes a! axis1 axis2
    moveaxis a! source destination
    rollaxis a! axis start
    expand_dims a! axis
    squeeze a! axis
    broadcast_to array! shape
    flip a! axis
    fliplr m!
    flipud m!
    roll a! shift axis
    rot90 a! k axes
    repeat a! repeats axis
    tile A! reps
    pad array! pad_width mode * constant_values
    split ary! indices_or_sections axis
    array_split ary! indices_or_sections axis
    hsplit ary! indices_or_sections
    vsplit ary! indices_or_sections
    concatenate tup+ axis out! * dtype casting
    stack tup+ axis out! * dtype casting
    hstack tup+ * dtype casting
    vstack tup+ * dtype casting
    dstack tup+
    column_stack tup+
    append arr! values! axis
    diag v! k
    diagflat v! k
    diagonal a! offset axis1 axis2
    trace a! offset axis1 axis2 dtype out!
    tril m! k
    triu m! k
    where condition! x? y?
    nonzero a!
    flatnonzero a!
    argwhere a!
    searchsorted a! v! side sorter!
    argpartition a! kth axis
    partition a! kth axis
    lexsort keys!
    unique ar! return_index return_inverse return_counts axis * equal_nan
    isin element! test_elements! assume_unique invert
    bincount x! weights! minlength
    digitize x! bins! right
    histogram x! bins range
    compress condition! a! axis
    extract condition! a!
    matmul x1! x2! out! * dtype casting
    dot a! b! out!
    vdot a! b!
    inner a! b!
    outer a! b! out!
    tensordot a! b! axes
    kron a! b!
    cross a! b! axisa axisb axisc axis
    allclose a! b? rtol atol equal_nan
    isclose a! b? rtol atol equal_nan
    array_equal a1! a2! equal_nan
    isreal x!
    iscomplex x!
"""

LINALG = """
    norm x! ord axis keepdims
    inv a!
    pinv a! rcond
    solve a! b!
    det a!
    slogdet a!
    cholesky a!
    qr a! mode
    svd a! full_matrices compute_uv
    eigh a! UPLO
    eigvalsh a! UPLO
    matrix_power M! n
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
