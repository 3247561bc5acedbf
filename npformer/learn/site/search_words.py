"""The words of the search: words without meaning, and words that mean the same.

A row of SYNONYMS is: what a learner types = words of the course, where commas separate alternatives. The
search looks for both, and what stands on the right counts a little less. Most rows are of three kinds: names
of PyTorch, abbreviations, and everyday words for a term.
"""

STOP_WORDS = """
a about actually after all also an and any are as at back be been between but by can cannot could did
difference do does doesn doesnt don dont for from get gets give go goes had has have how i if in into is
isn it its just like make makes me my no not of on one only or other our out should so some than that
the their them then there they this to too up use used uses using vs was we were what when where which
while who why will with without work works would you your
"""

_TABLE = """
sqrt = √, square root, scale
square root = √
√ = sqrt, square root
divide = division
division = divide
multiply = times, product
times = multiply, product
root = √
denominator = sum, divide
numerator = exponential
vanish = vanishing gradients
explode = exploding, clipping
exploding = clipping
nan = infinity, overflow
inf = infinity, overflow
lr = learning rate
sgd = gradient descent
ffn = feed-forward network
mlp = feed-forward network
feedforward = feed-forward
dense layer = linear layer
layernorm = layer norm
layer norm = layer normalization
batchnorm = batch norm
batch norm = batch normalization
rmsnorm = RMS norm
skip connection = residual connection
shortcut = residual connection
add x back = residual connection, sum
mha = multi-head attention
multihead = multi-head
multiple heads = several heads
gqa = grouped-query attention
mqa = grouped-query attention
qkv = query key value
rope = rotary positions
rotary embedding = rotary positions
positional embedding = positions
position embedding = positions
positional encoding = positions
sin = sinusoids
cos = sinusoids
word order = order positions
sentence order = order positions
word vector = embedding
word vectors = embedding
pad = padding
padding mask = key mask padding
future = causal
future word = causal mask, leak
future token = causal mask, leak
look ahead = causal mask
triangular = causal
cheat = leak
weight tying = tied weights
tie = tied
tying = tied
all masked = fully masked
flash attention = attention in blocks
flashattention = attention in blocks
bpe = byte-pair encoding
subword = byte-pair encoding
tokenizer = tokens, byte-pair encoding
nucleus = top-p
next word = next token, greedy search, sampling
choose = greedy search, sampling
generate = decoding, greedy search, KV cache
speed up = KV cache, kernels
slow = speed, kernels
fast = speed, kernels
faster = speed, kernels
rnn = recurrent, recurrence, before the Transformer
bptt = backpropagation through time
backprop = backward pass
backpropagation = backward pass
autograd = backward pass, gradient check
derivative = gradient
jacobian = gradient, derivative, chain rule
check gradient = gradient check, gradient checker
check my gradient = gradient check, gradient checker
gradcheck = gradient check
numerical gradient = complex step
finite difference = complex step
crossentropy = cross-entropy
nll = cross-entropy
p - q = cross-entropy
ignore index = tokens that are not padding
chinchilla = scaling law, scaling
quality = score, BLEU
measure = score
evaluate = score, perplexity, BLEU
important = saliency, ablation, gradient times input
saliency = gradient times input
matters = contribute, saliency
interpret = ablation, saliency
regularization = dropout, weight decay
inference = outside training, during training
eval = outside training, during training
too short = length normalization
huggingface = Hugging Face
gpt2 = GPT-2
gpt = causal language model
bert = masked language model
llama = RMS norm, rotary
from scratch = from its parts
gpu = CuPy
view = reshape, split heads
reshape = split heads
transpose = split heads
einsum = product
zero grad = gradient accumulation
key padding mask = padding mask, key mask
attn = attention
norm first = pre-norm, norm before
norm_first = pre-norm, norm before
prenorm = pre-norm
postnorm = post-norm
crossentropyloss = cross-entropy
clip grad norm = gradient clipping
clip grad = gradient clipping
state dict = state_dict, checkpoint
dead = dead units
dying = dead units
init = initial values
xavier = initial values
conv = convolution
"""

SYNONYMS = dict(row.split(" = ") for row in _TABLE.strip().splitlines())
