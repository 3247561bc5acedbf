"""The words of the course, each in a sentence, with the lesson that makes it and where the code has it.

A line is: term | in Chinese, as the documents are | what it is | lessons | code (these two as in
passages.py).
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from npformer.course.references import Place, code_place, lesson_place
from npformer.errors import UserError
from npformer.tables import items, rows

TERMS = """
activation | 激活函数 | a function applied number by number between two matrices, such as max(0, x) | 9 | functional/activations.relu
Adam | | steps of the size of the learning rate, whatever the gradient's: its mean over the root of its mean square | 13 | optim.Adam
adjoint | | the backward pass as a linear map: ⟨u, J v⟩ = ⟨Jᵀu, v⟩ for every u and v | 0 | gradcheck/properties._adjoint
antecedent | | the noun that a pronoun stands for: of "it" the animal or the street | 15 | data/corpus/pairs.Reference
attention | 注意力 | a weighted mean of values, the weights made from how well a query fits each key | 4; 5 | functional/attention.attention
attention weight | 注意力权重 | how much of a value goes into an output: a row of them is positive and sums to 1 | 5 | functional/attention.attention
backward pass | 反向传播 | from the gradient of a layer's output to those of its inputs and parameters | 0 | functional/linear.linear_backward
batch | | sentences that go through the model together, padded to one length | 1 | data/batches.make_batch
batch norm | 批归一化 | normalization over the batch, number by number: a word's output then depends on other sentences | 8 | layers/batch_norm.BatchNorm
beam search | 集束搜索 | decoding that keeps the few most probable beginnings at each step | 14 | decoding/beam.beam_search
bias | 偏置 | the numbers added after a product with a weight matrix | 0 | layers/linear.Linear
broadcasting | 广播 | NumPy's rule that repeats an axis which is missing or of length 1; backward sums over it | 0 |
cache | | what forward keeps for backward, by name; pictures and lessons read it too | 0 | show.show
causal mask | 因果掩码 | position t looks at positions 0 … t and no later one | 6; 11 | masks.causal_mask
chain rule | 链式法则 | the gradient through two maps is the product of theirs, and over several ways it is a sum | 0 |
checkpoint | | a run's whole state in a file: parameters, Adam's moments, settings, words | 13 | training/checkpoint.Checkpoint
clipping | 梯度裁剪 | a gradient longer than a limit is shortened to it, its direction kept | 13 | optim.clip_global_norm
complex step | | a derivative as Im f(x + ih)/h: nothing is subtracted, so nothing is lost | 0 | gradcheck/derivative.derivative_along
cross-attention | 交叉注意力 | attention with queries from the decoder, keys and values from the encoder's output | 11 | transformer/layers.DecoderLayer
cross-entropy | 交叉熵 | −log of the probability that the model gave to the right word, the mean over real words | 12 | functional/losses.cross_entropy
decoder | 解码器 | the half that writes: self-attention behind a causal mask, cross-attention, feed-forward | 11 | transformer/stacks.Decoder
d_model | | how many numbers stand for a word between layers: 512 in the paper | 2 | transformer/config.TransformerConfig
dropout | | in training, some numbers are set to 0 at random and the others scaled up | 8 | functional/dropout.dropout
embedding | 词向量 | a row of a table for each word; its gradient is added to the rows that were read | 2 | functional/embedding.embedding
encoder | 编码器 | the half that reads: self-attention and feed-forward, N times | 10 | transformer/stacks.Encoder
encoder-decoder attention | 编码器-解码器注意力 | see cross-attention | 11 | transformer/layers.DecoderLayer
feed-forward network | 前馈网络 | two linear maps with an activation between, the same for every word | 9 | layers/feed_forward.FeedForward
gradient | 梯度 | an array of the shape of another: how the loss changes with each of its numbers | 0 | gradcheck/check.gradcheck
gradient accumulation | 梯度累积 | gradients of several batches added up, each by its share of tokens, before one step | 13 | training/step.loss_and_gradients
gradient check | 梯度检验 | the slope of forward, measured, against what backward claims | 0 | gradcheck/check.gradcheck
greedy search | 贪心解码 | decoding that takes the most probable word each time, and never takes it back | 14 | decoding/greedy.greedy
head | 注意力头 | one attention of several, on its own share of the width | 7 | functional/heads.split_heads
key | 键 | what a word offers to be found by | 4; 5 | attention/multi_head.MultiHeadAttention
KL divergence | KL散度 | cross-entropy less the target's entropy: 0 only where both distributions agree | 12 | functional/losses.kl_divergence
label smoothing | 标签平滑 | a target of 1 − ε on the right word and ε spread over all of them | 12 | functional/losses.smooth_targets
layer norm | 层归一化 | a word's numbers less their mean, divided by their standard deviation, times a gain, plus a bias | 8 | functional/norm.layer_norm
leak | | an output that moves with a token which the mask forbids | 6 | leaks.assert_no_leak
learning rate | 学习率 | how far a step goes | 13 | optim.warmup
length penalty | | the exponent of the norm that a hypothesis' log-probability is divided by | 14 | decoding/beam.length_norm
linear | 线性层 | y = x weight + bias over the last axis | 0 | functional/linear.linear
logits | | scores of all words before the softmax | 12 | functional/softmax.softmax
mask | 掩码 | bool, True where a query may look at a key | 6 | functional/masking.mask_scores
memory | | the encoder's output as the decoder's layers read it | 11 | attention/multi_head.KeysValues
multi-head attention | 多头注意力 | several attentions side by side, concatenated and multiplied by W^O | 7 | attention/multi_head.MultiHeadAttention
padding | 填充 | PAD after a short sentence, so that a batch is one array; it must not count anywhere | 1; 6 | data/batches.pad
perplexity | 困惑度 | e to the loss: among how many words, all as likely, the model is undecided | 12 | training/step.Evaluation
position encoding | 位置编码 | vectors added to the words', since attention alone does not know their order | 3 | positions.sinusoids
post-norm, pre-norm | | layer norm after the residual sum, as in the paper, or before the sublayer | 8 | layers/residual.Residual
query | 查询 | what a word asks for | 4; 5 | attention/multi_head.MultiHeadAttention
residual connection | 残差连接 | x + f(x): the gradient has a way round f | 8 | layers/residual.Residual
scatter-add | | adding rows to the places of a table, those named twice twice: the embedding's gradient | 2 | functional/embedding.embedding_backward
self-attention | 自注意力 | attention whose queries, keys and values come from the same sentence | 4; 5 | attention/multi_head.MultiHeadAttention
shift right | | the decoder reads the target one place later, <S> first, and predicts the next word | 11 | transformer/model.shifted_right
softmax | | exponentials divided by their sum | 5 | functional/softmax.softmax
teacher forcing | | in training the decoder reads the right words, not its own | 11; 14 | transformer/model.shifted_right
tied weights | 共享权重 | the output layer multiplies by the embedding table: two gradients add in one parameter | 2; 12 | layers/embedding.TiedProjection
token | | a word or a punctuation mark, as the model reads it | 1 | data/tokens.tokenize
truncation | 截断 | a sentence cut to the longest that is allowed, its end symbol kept | 1 | data/batches.truncate
value | 值 | what a word hands over when it is looked at | 4; 5 | attention/multi_head.MultiHeadAttention
vocabulary | 词表 | the words that a model knows, numbered; PAD 0, UNK 1, <S> 2, </S> 3 | 1 | data/vocabulary.Vocabulary
warm-up | | the learning rate grows in a line before it falls | 13 | optim.warmup
adaptive halting | | each word stops after the step where its probabilities to stop sum to 1; the states of its steps are mixed | 21 | functional/halting.mix_states
additive attention | | Bahdanau's: scores by a small network with a tanh, asked for by the state before the word | 4; 17 | attention/luong.GlobalAttention
back-propagation through time | | the backward pass of a recurrent network: a state was handed out and handed on, two ways back | 17 | layers/recurrent.Recurrent
baseline | | what is taken off a reward before it weights a gradient by sampling: the same mean, less variance | 19 | attention/hard.MovingBaseline
GRU | | a recurrent cell whose state is a mean of what it was and of something new | 17 | functional/recurrent.gru_cell
hard attention | 硬注意 | one value, drawn by the weights, in place of their mean; it has no gradient of its own | 19 | functional/hard.hard_look_up
input feeding | | what attention made of the last word goes in with the next one | 17 | recurrent/decoder.RecurrentDecoder
latent attention | 潜在的注意力 | weights in two stages: which words are telling, and where each word points | 20 | functional/latent.latent_look_up
local attention | 当地的关注 | attention to a window round a position, the word's own or a predicted one | 18 | attention/luong.LocalPredictive
LSTM | | a recurrent cell with a memory that is kept in part, written to in part and shown in part | 17 | functional/recurrent.lstm_cell
masked-word model | | an encoder alone, which names the words that were hidden from it | 21 | transformer/language_models.MaskedWordModel
next-word model | | a decoder alone, which names the word that comes next | 21 | transformer/language_models.NextWordModel
relative positions | | a learned vector for each distance between two words, added to keys and values | 21 | functional/relative.relative_attention
ponder cost | | the steps that a word took and what remained of its last: added to a loss, it makes thinking dear | 21 | functional/halting.MixCache
score function | | the gradient of log p(s), by which what was drawn can be learned | 19 | functional/hard.score_function
straight-through | | a draw in forward, and in backward what the mean would have had: biased | 19 | functional/hard.straight_through_backward
Universal Transformer | | one layer's weights repeated, as often as each word needs | 21 | transformer/universal.UniversalEncoder
BLEU | | the words, pairs, threes and fours that a translation shares with a reference, and a penalty for being short | 22 | bleu.bleu
brevity penalty | | what keeps a translation of few sure words from a high BLEU: exp(1 − r/c) where it is shorter | 22 |
byte-pair encoding | | words as pieces: the most frequent neighbours are joined first, when made and when read | 22 | data/bpe.Pieces
floor | | the time of a step's matrix products alone | 16 | bench/floor.floor_step
kernel | | a fast version of a plain pair, held to it by tests | 16 | kernels/choice.choose
packing | | the words of a batch without its padding, for all that looks at one position | 16 | functional/packing.pack
subword | | a piece of a word, in a vocabulary that no word falls out of | 22 | data/subwords.SubwordCodec
BLAS | | the library that multiplies matrices for NumPy, with threads of its own | 16 |
online softmax | | a softmax over blocks, which carries the maximum and the sum so far | 16 |
W^O | | the matrix that mixes the concatenated heads | 7 | attention/multi_head.MultiHeadAttention
"""  # noqa: E501 - a row of a table is a line


@dataclass(frozen=True)
class Term:
    """A word of the course."""

    name: str
    chinese: str  # "" where Chinese keeps the English word
    meaning: str
    lessons: Sequence[Place]
    code: Sequence[Place]


def all_terms() -> list[Term]:
    """Every term, in alphabetical order. Errors: UserError for a lesson or a name that is gone."""
    terms = [
        Term(
            name,
            chinese,
            meaning,
            [lesson_place(item) for item in items(lessons)],
            [code_place(item) for item in items(code)],
        )
        for name, chinese, meaning, lessons, code in rows(TERMS)
    ]
    return sorted(terms, key=lambda term: term.name.lower())


def find_terms(word: str) -> list[Term]:
    """The terms whose name, Chinese name or meaning holds the word: the names first.

    Errors: UserError where there is none; it names what comes nearest.
    """
    terms, asked = all_terms(), word.strip().lower()
    named = [term for term in terms if asked and asked in f"{term.name} {term.chinese}".lower()]
    named.sort(key=lambda term: term.name.lower() != asked)  # the very word first
    others = [term for term in terms if asked and asked in term.meaning.lower() and term not in named]
    if named or others:
        return named + others
    near = difflib.get_close_matches(asked, [term.name.lower() for term in terms], n=1, cutoff=0.5)
    hint = f"do you mean {near[0]}? " if near else ""
    raise UserError(f"the glossary has no {word!r}: {hint}npformer glossary lists all terms")
