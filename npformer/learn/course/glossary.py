"""The glossary: each term of the course with a definition, the lessons that explain it, and the code.

A row of the table is: term | the Chinese term | definition | lessons | code. Lessons and code have the same
form as in passages.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from npformer.data.corpus.entries import table_rows
from npformer.errors import unknown
from npformer.learn.course.references import SourceLocation, code_location, items, lesson_location

TERMS = """
activation | 激活函数 | a nonlinear function applied to each number between two linear maps, such as max(0, x) | 9 | functional/activations.relu
Adam | | an optimizer that divides the running mean of each gradient by the root of its running mean square, so that steps have about the size of the learning rate | 13 | training/optimizer.Adam
adjoint | | the backward pass as a linear map: ⟨u, J v⟩ = ⟨Jᵀu, v⟩ for all u and v | 0 | checking/properties._adjoint
antecedent | | the noun that a pronoun refers to: for "it", the animal or the street | 15 | data/corpus/pairs.Reference
attention | 注意力 | a weighted mean of values, with weights computed from the similarity of a query to each key | 4; 5 | functional/attention.attention
attention weight | 注意力权重 | the share of a value in an output; the weights of a query are not negative and sum to 1 | 5 | functional/attention.attention
backward pass | 反向传播 | the computation of the gradients of a layer's inputs and parameters from the gradient of its output | 0 | functional/linear.linear_backward
batch | | sentences that pass through the model together, padded to the same length | 1 | data/loader.make_batch
batch norm | 批归一化 | normalization of each number over the batch, so that the output for a token depends on other sentences | 8 | nn/norm.BatchNorm
beam search | 集束搜索 | decoding that extends the few most probable prefixes at each step | 14 | generation/beam.beam_search
bias | 偏置 | the vector added after a product with a weight matrix | 0 | nn/linear.Linear
broadcasting | 广播 | NumPy's rule that repeats an axis which is missing or has length 1; the backward pass sums over it | 0 |
cache | | the arrays, with names, that forward stores for backward; figures and lessons read them too | 0 | nn/show.show
causal mask | 因果掩码 | position t may attend to positions 0 … t and to no later one | 6; 11 | functional/masks.causal_mask
chain rule | 链式法则 | the gradient through two maps is the product of their Jacobians; gradients of several paths add up | 0 |
checkpoint | | a file with the whole state of a run: parameters, Adam's moments, settings, vocabularies | 13 | storage/checkpoint.Checkpoint
clipping | 梯度裁剪 | a gradient whose norm exceeds a limit is scaled down to that limit, in the same direction | 13 | training/optimizer.clip_global_norm
complex step | | the derivative as Im f(x + ih)/h: nothing is subtracted, so no digits cancel | 0 | checking/derivative.derivative_along
cross-attention | 交叉注意力 | attention with queries from the decoder and keys and values from the encoder's output | 11 | models/transformer/layers.DecoderLayer
cross-entropy | 交叉熵 | the mean of −log p(target token) over all tokens that are not padding | 12 | functional/losses.cross_entropy
decoder | 解码器 | the half that generates: self-attention with a causal mask, cross-attention, feed-forward network | 11 | models/transformer/stacks.Decoder
d_model | | the width of the vectors between layers: 512 in the paper | 2 | models/transformer/config.TransformerConfig
dropout | | in training, random entries are set to 0 with probability p and the others divided by 1 − p | 8 | functional/dropout.dropout
embedding | 词向量 | a table with one row for each token; its gradient is added to the rows that were read | 2 | functional/embedding.embedding
encoder | 编码器 | the half that reads: self-attention and a feed-forward network, N times | 10 | models/transformer/stacks.Encoder
encoder-decoder attention | 编码器-解码器注意力 | another name for cross-attention | 11 | models/transformer/layers.DecoderLayer
feed-forward network | 前馈网络 | two linear maps with an activation between them, the same for every position | 9 | nn/feed_forward.FeedForward
gradient | 梯度 | the derivative of the loss with respect to each number of an array, as an array of the same shape | 0 | checking/check.gradcheck
gradient accumulation | 梯度累积 | the gradients of several batches are added, weighted by their numbers of tokens, before one optimizer step | 13 | training/step.loss_and_gradients
gradient check | 梯度检验 | a comparison of the gradients that backward computes with numerical derivatives of forward | 0 | checking/check.gradcheck
greedy search | 贪心解码 | decoding that chooses the most probable token at each step | 14 | generation/greedy.greedy
head | 注意力头 | one of several attention functions that run in parallel, each on its own slice of d_model / n_heads dimensions | 7 | functional/heads.split_heads
key | 键 | the vector of a position that queries are compared with | 4; 5 | nn/attention/multi_head.MultiHeadAttention
KL divergence | KL散度 | cross-entropy minus the entropy of the target; it is 0 only if both distributions are equal | 12 | functional/losses.kl_divergence
label smoothing | 标签平滑 | a target distribution with 1 − ε on the target token and ε spread over all tokens | 12 | functional/losses.smooth_targets
layer norm | 层归一化 | each vector minus its mean, divided by its standard deviation, times a gain, plus a bias | 8 | functional/norm.layer_norm
leak | | an output that depends on a token which the mask hides | 6 | checking/leaks.assert_no_leak
learning rate | 学习率 | the factor that determines the size of an optimizer step | 13 | training/optimizer.warmup
length penalty | | the exponent of the length norm by which the log-probability of a hypothesis is divided | 14 | generation/beam.length_norm
linear | 线性层 | y = x weight + bias over the last axis | 0 | functional/linear.linear
logits | | the scores of all tokens before the softmax | 12 | functional/softmax.softmax
mask | 掩码 | a bool array, True where a query may attend to a key | 6 | functional/masks.mask_scores
memory | | the encoder's output, which the decoder's layers attend to | 11 | nn/attention/kv_cache.KVCache
multi-head attention | 多头注意力 | several attention functions in parallel, whose outputs are concatenated and multiplied by W^O | 7 | nn/attention/multi_head.MultiHeadAttention
padding | 填充 | PAD tokens after a short sentence, so that a batch is one array; they must not affect any result | 1; 6 | data/loader.pad
perplexity | 困惑度 | e to the power of the loss: the number of equally probable tokens that would give the same loss | 12 | training/step.Evaluation
position encoding | 位置编码 | vectors added to the embeddings, because attention alone does not depend on the order of tokens | 3 | functional/positions.sinusoids
post-norm, pre-norm | | layer norm after the residual sum, as in the paper, or before the sublayer | 8 | nn/residual.Residual
query | 查询 | the vector with which a position computes its similarity to each key | 4; 5 | nn/attention/multi_head.MultiHeadAttention
residual connection | 残差连接 | x + f(x): the gradient reaches x directly, past f | 8 | nn/residual.Residual
scatter-add | | an addition of rows to a table at given indices, where repeated indices add up: the gradient of the embedding | 2 | functional/embedding.embedding_backward
self-attention | 自注意力 | attention whose queries, keys and values come from the same sentence | 4; 5 | nn/attention/multi_head.MultiHeadAttention
shift right | | the decoder reads the target shifted by one position, <S> first, and predicts the next token | 11 | models/transformer/model.shifted_right
softmax | | exponentials divided by their sum | 5 | functional/softmax.softmax
teacher forcing | | in training the decoder reads the target tokens, not its own predictions | 11; 14 | models/transformer/model.shifted_right
tied weights | 共享权重 | the output layer multiplies by the embedding table, so that two gradients add up in one parameter | 2; 12 | nn/embedding.TiedProjection
token | | a word, a punctuation mark or a subword, as the model reads it | 1 | data/tokens.tokenize
truncation | 截断 | a sentence is cut to the maximum length, with its end symbol at the end | 1 | data/loader.truncate
value | 值 | the vector that a position contributes to the outputs of the queries that attend to it | 4; 5 | nn/attention/multi_head.MultiHeadAttention
vocabulary | 词表 | the tokens of a model and their ids; PAD 0, UNK 1, <S> 2, </S> 3 | 1 | data/vocabulary.Vocabulary
warm-up | | the learning rate increases linearly before it decreases | 13 | training/optimizer.warmup
adaptive halting | | each position stops after the step at which its halting probabilities sum to 1; its output is the mixture of its states | 21 | functional/halting.mix_states
additive attention | | Bahdanau's attention: scores from a small network with a tanh, with the decoder's previous state as query | 4; 17 | nn/attention/luong.GlobalAttention
back-propagation through time | | the backward pass of a recurrent network: each state gets gradients from its output and from the next state | 17 | nn/recurrent.Recurrent
baseline | | a number subtracted from the reward of a sampled gradient: it leaves the mean unchanged and reduces the variance | 19 | nn/attention/hard.MovingBaseline
GRU | | a recurrent cell whose new state is a weighted mean of its old state and a candidate | 17 | functional/recurrent.gru_cell
hard attention | 硬注意 | attention to one value that is sampled with the attention weights; sampling has no gradient | 19 | functional/hard.hard_attend
input feeding | | the decoder's input contains the attention output of the previous step | 17 | models/recurrent/decoder.RecurrentDecoder
latent attention | 潜在的注意力 | attention weights from two stages: the importance of each token, and the attention of each token to the others | 20 | functional/latent.latent_attend
local attention | 当地的关注 | attention to a window around a position, either the token's own or a predicted one | 18 | nn/attention/luong.LocalPredictive
LSTM | | a recurrent cell with a memory and gates that forget, write and read it in part | 17 | functional/recurrent.lstm_cell
masked language model | | an encoder that predicts tokens which are hidden in its input | 21 | models/bert.MaskedLanguageModel
causal language model | | a decoder without cross-attention that predicts the next token | 21 | models/gpt.CausalLanguageModel
relative positions | | a learned vector for each distance between two tokens, added to keys and values | 21 | functional/relative.relative_attention
ponder cost | | the number of steps of a position plus the remainder of its last step; a loss with it penalizes steps | 21 | functional/halting.MixCache
score function | | the gradient of log p(s), with which the distribution of a sample can be trained | 19 | functional/hard.score_function
straight-through | | a sample in forward with the gradient of the mean in backward: a biased estimate | 19 | functional/hard.straight_through_backward
Universal Transformer | | one layer that is repeated, as often as each position needs | 21 | models/universal.UniversalEncoder
BLEU | | the shares of n-grams (n = 1 … 4) of a translation that occur in a reference, with a penalty for short translations | 22 | generation/bleu.bleu
brevity penalty | | the factor exp(1 − r/c) of BLEU for a translation that is shorter than its reference | 22 |
byte-pair encoding | | a vocabulary of subwords made by joining the most frequent pair of neighbours again and again | 22 | data/subwords.Pieces
floor | | the time of a training step's matrix products alone | 16 | bench/floor.floor_step
kernel | | a fast implementation of a forward and a backward function, which tests compare with the plain ones | 16 | kernels/choice.choose
packing | | the tokens of a batch without its padding, for layers that treat each position separately | 16 | functional/packing.pack
subword | | a piece of a word; every word can be written with the subwords of a vocabulary | 22 | data/subwords.SubwordCodec
BLAS | | the library with which NumPy multiplies matrices, with its own threads | 16 |
online softmax | | a softmax computed block by block, with a running maximum and sum | 16 |
W^O | | the matrix that multiplies the concatenated heads | 7 | nn/attention/multi_head.MultiHeadAttention
"""  # noqa: E501 - a row of a table is a line


@dataclass(frozen=True)
class Term:
    """A term of the course."""

    name: str
    chinese: str  # "" if Chinese uses the English term
    meaning: str
    lessons: Sequence[SourceLocation]
    code: Sequence[SourceLocation]


def all_terms() -> list[Term]:
    """Return every term, in alphabetical order.

    Raises:
        UserError: If a lesson or a name no longer exists.
    """
    terms = [
        Term(
            name,
            chinese,
            meaning,
            [lesson_location(item) for item in items(lessons)],
            [code_location(item) for item in items(code)],
        )
        for name, chinese, meaning, lessons, code in table_rows(TERMS)
    ]
    return sorted(terms, key=lambda term: term.name.lower())


def find_terms(word: str) -> list[Term]:
    """Return the terms whose name, Chinese name or definition contains a word, the names first.

    Raises:
        UserError: If there is none. It suggests the nearest term.
    """
    terms, query = all_terms(), word.strip().lower()
    named = [term for term in terms if query and query in f"{term.name} {term.chinese}".lower()]
    named.sort(key=lambda term: term.name.lower() != query)  # the word itself first
    others = [term for term in terms if query and query in term.meaning.lower() and term not in named]
    if named or others:
        return named + others
    raise unknown("term", word, [term.name for term in terms], "npformer glossary")
