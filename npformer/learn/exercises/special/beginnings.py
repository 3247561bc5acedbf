"""Chapters 0 and 1: the mistakes that are special to an exercise."""

MISTAKES = r"""
=== swish-backward
(s + x * ds) => s ## the product rule has a second term, because s depends on x too: it is left out
=> (x * ds) ## the product rule has two terms: the term s is left out
=> ds ## the derivatives of the two factors are multiplied: the product rule adds two terms, each with the
    derivative of one factor
=> (1 + ds) ## the derivatives of the two factors are added: in the product rule each is multiplied by the
    other factor
=> (ds + x * s) ## s and its derivative are exchanged in the product rule: x belongs to the derivative of s,
    and s stands alone
ds = s * (1 - s) => ds = x * (1 - x) ## the derivative of the sigmoid is computed from x, and must be computed
    from s
=> s = 1 / (1 + np.exp(-s)); ds = s * (1 - s)
    ## the sigmoid is applied to s, which is the sigmoid of x already
=> ds = s * (s - 1) ## the derivative of the sigmoid has the wrong sign
dy * (s + x * ds) => s + dy * x * ds ## dy multiplies only the second term: it belongs to both
=> np.where(x > 0, dy, 0)
    ## this is the gradient of ReLU: swish lets a part of the gradient pass where x is negative too
=== linear-backward
rows.T @ drows => x[-1].reshape(-1, x.shape[-1]).T @ dy[-1].reshape(-1, dy.shape[-1])
    ## dweight is that of the last entry of axis 0 only: those of all sentences must be summed
drows.sum(0) => drows.mean(0) && @ drows => @ drows / len(rows)
    ## the gradients of weight and bias are averaged over the rows: they must be sums
=> drows.sum(0) * weight.sum(0)
    ## dbias contains the weight: the bias is added after the product, so dy itself is summed
=== derivative
np.imag(y) / h => np.imag(y) ## it is not divided by h
=> np.abs(y) / h ## the absolute value of y is used instead of the imaginary part
=> np.imag(y).sum() / h ## the entries of y are summed: the derivative has the shape of y
np.imag(y) => np.real(y) ## the real part of y is used instead of the imaginary part
moved[name] = target.tensors[name] => moved = {}; moved[name] = target.tensors[name]
    ## only one of the tensors is moved: all tensors must be moved at once, in one call of target.run
h = 1e-20 => h = NUMBER ## h is too large: the error of the complex step grows like h²
=> h = NUMBER && 1j * h * v => h * v && np.imag(y) / h => (y - target.run({})[0]) / h
    ## a difference quotient with a real step is computed: it has an error that a complex step avoids
1j * h * v => 1j * h * v * target.tensors[name]
    ## the step is multiplied by the tensor: the direction itself must be added
=> 1j * h * v / np.linalg.norm(v) ## the directions are divided by their length: use them as they are
=== pad
: len(row) => width - len(row) : ## the rows are padded on the left and must be padded on the right
max(map(len, rows)) => len(rows[0]) ## the width is the length of the first row instead of the longest row
=> len(rows[0]) && : len(row)] = row => : len(row)] = row[:width]
    ## the width is the length of the first row instead of the longest row, and longer rows are cut
=> max(map(len, rows)) + 1 ## the array has one column too many
=> min(map(len, rows)) && : len(row)] = row => :] = row[:width]
    ## all rows are cut to the shortest row: the width is that of the longest row
=> sum(map(len, rows)) ## the width is the number of all ids: it is the length of the longest row
padded[i, : len(row)] = row => padded[i] = [*row, *[row[-1] if row else pad_id] * (width - len(row))]
    ## the empty places repeat the last id of the row: they must hold pad_id
=> padded[i] = np.resize(row, width) if row else pad_id
    ## the empty places repeat the row from its beginning: they must hold pad_id
enumerate(rows) => enumerate(sorted(rows, key=len)) ## the rows are sorted by their lengths: keep their order
=> enumerate(sorted(rows, key=len, reverse=True))
    ## the rows are sorted by their lengths, the longest first: keep their order
=== truncate
[*ids[: max_length - 1], END] => [*ids[:max_length], END]
    ## the result is one id longer than max_length: END needs a place too
=> [*ids[: max_length - 2], END] ## the result is one id too short
=> [*ids[: max_length - 2], END] && return ids[:max_length] => return [*ids[: max_length - 1], END]
    ## END takes the last place of every sentence that is cut, and the result is one id too short if the ids
    end with END
=> ids[-max_length:]
    ## the last ids are kept of a sentence that ends with END: keep the first max_length - 1 ids, and END
ids[-1] == END => END in ids
    ## END is added to ids that contain END and do not end with it: only the last id counts
return ids[:max_length] => return ids[-max_length:] && [*ids[: max_length - 1], END] => ids[-max_length:]
    ## the last ids are kept instead of the first
=> return [*ids[: max_length - 1], ids[-1]]
    ## the last id is kept also if it is not END: then the result is the first max_length ids
return list(ids) => return [*ids, END] if ids and ids[-1] != END and len(ids) < max_length else list(ids)
    ## END is added to short ids that do not end with it: return them unchanged
=> return [i for i in ids if i != END] ## END is removed from ids that are short enough: return them unchanged
if len(ids) <= max_length: => if END in ids[:max_length]: return ids[: ids.index(END) + 1]\n    if len(ids) <=
    max_length: ## the ids are cut at the first END: only the last id counts
"""
