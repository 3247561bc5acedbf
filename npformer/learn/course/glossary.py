"""The glossary: each term of the course with its definition, the lessons that explain it, and the code.

A row of the table is: term | the Chinese term | definition | lessons | code. Lessons and code have the same
form as in passages.py. A definition contains the formula and the shapes of its arrays, if there are any.
`SHAPES` explains the letters of the shapes. Backticks enclose text that Markdown would read as HTML.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from npformer.data.corpus.entries import table_rows
from npformer.errors import unknown
from npformer.language import ENGLISH, GLOSSARY, current_language, phrase
from npformer.learn.course.references import SourceLocation, code_location, items, lesson_location

TERMS = """
activation function | 激活函数 | A nonlinear function that is applied to each number separately. It stands between two linear layers. An example is relu(x) = max(0, x). Shapes: (..., F) → (..., F). | 9.1; 9.2 | functional/activations.relu
Adam | | An optimizer that adapts the step size of each parameter to the size of its gradients. With the gradient g at step t: m ← β₁ m + (1 − β₁) g, v ← β₂ v + (1 − β₂) g², m̂ = m / (1 − β₁ᵗ), v̂ = v / (1 − β₂ᵗ), θ ← θ − lr · m̂ / (√v̂ + ε). Shapes: m and v have the shape of the parameter θ. | 13 The two moving averages; 13 The length of a step | training/optimizer.Adam
adjoint | 伴随 | Of a linear map J, the linear map Jᵀ for which ⟨u, J v⟩ = ⟨Jᵀ u, v⟩ holds for all vectors u and v. The derivative of a function at a point is a linear map J, and the backward pass computes its adjoint: dx = Jᵀ dy. | 0.3 | checking/properties._adjoint
antecedent | 先行词 | The noun that a pronoun refers to. In "The animal didn't cross the street because it was too tired", the antecedent of "it" is "animal". | 15 | data/corpus/pairs.Reference
attention | 注意力 | A weighted mean of values. Each query is compared with every key, and a softmax turns these scores into the weights. Scaled dot-product attention is softmax(QKᵀ/√dₖ)V. Shapes: Q (T, d_k), K (S, d_k), V (S, d_v) → (T, d_v). | 4.1; 4.4; 5.1 | functional/attention.attention
attention weight | 注意力权重 | The factor of a value in the weighted mean. The weights of a query are p_ts = exp(a_ts) / Σ_r exp(a_tr) for its scores a_ts, so they are not negative and sum to 1. Shape: (T, S). | 4.1; 5.1 | functional/attention.attention
backward pass | 反向传播 | The computation of the gradients of a layer's inputs and parameters from the gradient dy of its output. For y = x W the gradients are dx = dy Wᵀ and dW = xᵀ dy. Shapes: x (N, I), W (I, O), y (N, O). | 0.2 | functional/linear.linear_backward
batch | 批次 | Several sentences that the model processes together. The shorter ones are padded to the length T of the longest, so that their token ids form one array (B, T). | 1.1 | data/loader.make_batch
batch normalization | 批归一化 | Normalization of each component over all tokens of the batch: y = gain · (x − mean) / √(variance + eps) + bias, where mean and variance have the shape (D,). In training, the output for a token therefore depends on the other sentences of the batch. | 8.5 | nn/norm.BatchNorm
beam search | 束搜索 | Decoding that keeps the k most probable unfinished prefixes at each step (k is the beam size), extends each of them by every token, and keeps the k best results. With k = 1 it is greedy search. | 14 Beam search | generation/beam.beam_search
bias | 偏置 | The vector b in y = x W + b. Its gradient is the sum of dy over all rows. Shape: (O,). | 0.2 | nn/linear.Linear
bits per character | 每字符比特数 | The loss of a language model in nats per token, divided by ln 2 and by the mean number of characters in a token. It can be compared between models whose tokens differ. | 24.1 | training/validator.Validator
broadcasting | 广播 | NumPy's rule by which an axis that is missing or has length 1 is repeated to match the other array. The backward pass sums the gradient over each repeated axis. | 0.2 |
cache | 缓存 | The named tuple of arrays that a forward pass stores for the backward pass. Figures and lessons read it as well. | 0.2; 10.2 | nn/show.show
causal mask | 因果掩码 | The mask that lets position t attend only to itself and to the positions before it: mask[t, s] is True if s ≤ t. Shape: (T, T). | 6.1; 11.1 | functional/masks.causal_mask
chain rule | 链式法则 | The rule for the derivative of a composed function: the Jacobian of g(f(x)) is the product J_g J_f, so that dx = J_fᵀ J_gᵀ dy. If x influences the result in several ways, the gradients of all of them are added. | 0.2 |
checkpoint | 检查点 | A file with the complete state of a training run: parameters, Adam's m and v, settings and vocabularies. | 13 The corpus | storage/checkpoint.Checkpoint
gradient clipping | 梯度裁剪 | A limit c for the norm of the gradient of all parameters: if ‖g‖ > c, the gradient is multiplied by c / ‖g‖, which keeps its direction. Shape: g (P,) for P parameters. | 13 Gradient clipping | training/optimizer.clip_global_norm
complex step | 复数步长 | A numerical derivative with a complex increment: f′(x) ≈ Im f(x + ih) / h with a tiny h such as 1e−20. It contains no difference of nearly equal numbers, so it is exact up to rounding. | 0.3 | checking/derivative.derivative_along
cross-attention | 交叉注意力 | Attention whose queries come from the decoder and whose keys and values come from the encoder's output. Shape of the weights: (B, H, T, S) for T target and S source positions. | 11.3 | models/transformer/layers.DecoderLayer
cross-entropy | 交叉熵 | The loss −Σ_v q_v log p_v between a target distribution q and a predicted distribution p. For a single target token it is −log p(target). The loss of a batch is the mean over all tokens that are not padding. Shapes: logits (B, T, V) → a number. | 12.1 | functional/losses.cross_entropy
decoder | 解码器 | The part of the Transformer that generates the target: N layers, each with masked self-attention, cross-attention and a feed-forward network. Shapes: (B, T, D) and memory (B, S, D) → (B, T, D). | 11.1 | models/transformer/stacks.Decoder
d_model | | The width D of the vectors between the layers, 512 in the paper's base model. | 2.1 | models/transformer/config.TransformerConfig
dropout | | A regularization method. In training each number becomes 0 with probability p and is otherwise divided by 1 − p, so that its expected value stays the same. Outside training y = x. | 8.3 | functional/dropout.dropout
embedding | 嵌入 | A learned vector for each token, stored as a row of a table: y = table[ids]. The gradient of a row is the sum of the gradients of all positions that read it. Shapes: ids (B, T), table (V, D) → (B, T, D). | 2.1 | functional/embedding.embedding
encoder | 编码器 | The part of the Transformer that reads the source: N layers, each with self-attention and a feed-forward network. Shapes: (B, S, D) → (B, S, D). | 10.3 | models/transformer/stacks.Encoder
encoder-decoder attention | 编码器-解码器注意力 | The paper's name for cross-attention. | 11.3 | models/transformer/layers.DecoderLayer
feed-forward network | 前馈网络 | Two linear layers with an activation function between them, applied to each position separately: FFN(x) = max(0, x W₁ + b₁) W₂ + b₂. Shapes: x (B, T, D), W₁ (D, F), W₂ (F, D) → (B, T, D). | 9.1 | nn/feed_forward.FeedForward
gradient | 梯度 | The array of the derivatives of the loss with respect to each number of an array: dx = ∂loss/∂x. It has the shape of x. | 0.0 Which way; 0.2 | checking/check.gradcheck
gradient accumulation | 梯度累积 | The addition of the gradients of several batches before one optimizer step. Each batch is weighted by its share of the tokens, so that the result is the gradient of one large batch. | 13 Gradient accumulation | training/step.loss_and_gradients
gradient check | 梯度检验 | A comparison of the gradient g from the backward pass with a numerical derivative of the forward pass: ⟨g, v⟩ must equal the derivative of the loss along a random direction v. | 0.2 Is it right; 0.3 | checking/check.gradcheck
greedy search | 贪心搜索 | Decoding that chooses the most probable token at each step: y_t = argmax over v of p(v, given y_1 … y_{t−1} and the source). | 14 Greedy search | generation/greedy.greedy
head | 头 | One of several attention functions that run in parallel, each on its own slice of d_model / n_heads dimensions. Shape: (B, H, T, K) with K = D / H. | 7.1 | functional/heads.split_heads
key | 键 | The vector of a position with which queries are compared, k = x W^K. Shape: (B, H, S, K). | 4.3; 4.4; 5.1 | nn/attention/multi_head.MultiHeadAttention
KL divergence | KL 散度 | A measure of the difference between two distributions: KL(q, p) = Σ_v q_v (log q_v − log p_v). It equals the cross-entropy minus the entropy of q. It is never negative, and it is 0 only if q = p. | 12.1; 12.3 | functional/losses.kl_divergence
label smoothing | 标签平滑 | Training with the target distribution q = (1 − ε) · one-hot(target) + ε / V instead of the one-hot distribution. Shape: (B, T, V). | 12.3 | functional/losses.smooth_targets
layer normalization | 层归一化 | Normalization of each vector by its own mean and variance: y = gain · (x − mean) / √(variance + eps) + bias. Shapes: x (..., D), gain and bias (D,) → (..., D). | 8.1; 8.2 | functional/norm.layer_norm
leak | 泄漏 | An error by which an output depends on a token that the mask forbids it to attend to. | 6.3; 11.2 | checking/leaks.assert_no_leak
learning rate | 学习率 | The factor lr that determines the size of an optimizer step. In gradient descent, θ ← θ − lr · g. | 13 From a gradient; 13 The learning-rate schedule | training/optimizer.warmup
length normalization, length penalty | 长度归一化、长度惩罚 | In beam search, the score of a finished translation y of n tokens is log p(y) / ((5 + n) / 6)^α. The division is the length normalization, and the exponent α is the length penalty. With α = 0 the search prefers short translations. | 14 A score in place | generation/beam.length_norm
linear layer | 线性层 | The map y = x W + b over the last axis. Shapes: x (..., I), W (I, O), b (O,) → (..., O). | 0.2 | functional/linear.linear
logits | | The scores of all tokens of the vocabulary before the softmax. Shape: (B, T, V). | 12.1 | functional/softmax.softmax
mask | 掩码 | A Boolean array that is True where a query may attend to a key. The scores where it is False are set to −∞ before the softmax, so that their weights are 0. Shape: broadcastable to (B, H, T, S). | 6.1 | functional/masks.mask_scores
memory | 记忆 | The output of the encoder, from which the decoder's cross-attention computes its keys and values. Shape: (B, S, D). | 11.1; 11.5 | nn/attention/kv_cache.KVCache
multi-head attention | 多头注意力 | H attention functions that run in parallel. Their outputs are concatenated and multiplied by a matrix: Concat(head_1, …, head_H) W^O, where head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V). Shapes: (B, T, D) → (B, T, D). | 7.1 | nn/attention/multi_head.MultiHeadAttention
padding | 填充 | PAD tokens that are appended to the shorter sentences of a batch until all have the same length. The masks and the loss ignore padding, so it does not change the results of the other tokens. | 1.1; 1.2; 6.1 | data/loader.pad
perplexity | 困惑度 | The number exp(loss), where the loss is the cross-entropy per token. A model that chooses uniformly among k tokens has the perplexity k. | 12.4 | training/evaluation.Evaluation
positional encoding | 位置编码 | A vector for each position that is added to the embedding of the token. It is needed because attention alone does not depend on the order of the tokens. In the paper PE[pos, 2i] = sin(pos / 10000^(2i/D)), PE[pos, 2i+1] = cos(pos / 10000^(2i/D)). Shape: (T, D). | 3.1; 3.2 | functional/positions.sinusoids
post-norm, pre-norm | 后置归一化、前置归一化 | The two places where a layer normalization can stand beside a sublayer f. Post-norm, as in the paper, is LayerNorm(x + f(x)). Pre-norm is x + f(LayerNorm(x)). | 8.4 | models/transformer/pre_norm.PreNormEncoderLayer
query | 查询 | The vector with which a position is compared with the keys, q = x W^Q. The score of key s is q · k_s / √K. Shape: (B, H, T, K). | 4.3; 4.4; 5.1 | nn/attention/multi_head.MultiHeadAttention
residual connection | 残差连接 | The sum of a sublayer's input and output, y = x + f(x). Its backward pass is dx = dy + J_fᵀ dy, where J_f is the Jacobian of f. So dy reaches x unchanged through the first term. | 8.3 | nn/norm.AddNorm
scatter-add | | The addition of rows to a table at given indices, where the rows of equal indices are all added: dtable[ids[n]] += dy[n] for every n. It is the backward pass of the embedding. Shapes: dy (N, D), ids (N,) → dtable (V, D). | 2.1 | functional/embedding.embedding_backward
self-attention | 自注意力 | Attention whose queries, keys and values are computed from the same sequence x. Shapes: (B, T, D) → (B, T, D). | 4.1; 4.2; 4.4 | nn/attention/multi_head.MultiHeadAttention
shifted right | 右移 | The form of the target that the decoder reads in training: the start symbol `<S>` is put in front, and the last token is left out. So position t predicts target token t from the tokens before it. Shape: (B, T). | 11.1 | models/transformer/model.shifted_right
softmax | | The function that turns scores into a probability distribution: y_i = exp(x_i) / Σ_j exp(x_j) over the last axis. Shapes: (..., N) → (..., N). | 5.1; 5.2 | functional/softmax.softmax
teacher forcing | 教师强制 | Training in which the decoder reads the correct target tokens and not its own predictions, so that all positions are computed in parallel. | 11.1; 14 Two ways to use | models/transformer/model.shifted_right
temperature | 温度 | The number τ by which the logits are divided before the softmax: p = softmax(z / τ). Below 1, probable tokens become more probable. Shapes: (B, V) → (B, V). | 24.2 | generation/sampling.token_probabilities
tied weights | 共享权重 | One parameter that is used in two places: logits = h Eᵀ, where E (V, D) is also the embedding table. Its gradient is the sum of the gradients of both uses. | 2.2; 12.3; 22.2 | nn/embedding.TiedProjection
token | 词元 | A unit of text that has an id in the vocabulary: a word, a punctuation mark or a subword. | 1.1 | data/tokens.tokenize
top-p sampling | top-p 采样 | Sampling from the smallest set of the most probable tokens whose probabilities sum to at least p. The other probabilities become 0, and each row is divided by its sum. Shapes: (B, V) → (B, V). | 24.2 | generation/sampling.token_probabilities
truncation | 截断 | The shortening of a token sequence to a maximum length n. If the sequence ended with the end symbol `</S>`, npformer keeps the first n − 1 tokens and the end symbol. | 1.1 | data/loader.truncate
value | 值 | The vector of a position that enters the weighted mean, v = x W^V. Shape: (B, H, S, d_v), where d_v = d_k in the paper. | 4.3; 4.4; 5.1 | nn/attention/multi_head.MultiHeadAttention
vocabulary | 词表 | The list of all V tokens that a model knows, each with its id. The ids of PAD, UNK, `<S>` and `</S>` are 0, 1, 2 and 3. | 1.1 | data/vocabulary.Vocabulary
warm-up | 预热 | The first part of a learning-rate schedule, in which the learning rate increases. In the paper, the learning rate at step s is D^−0.5 · min(s^−0.5, s · w^−1.5). It increases linearly for w steps and then decreases. | 13 The learning-rate schedule | training/optimizer.warmup
ablation | 消融 | An experiment in which a part of a model or of its input is removed, and the change of the result is measured. To remove head h of an attention layer, its block W^O_h of the output projection is set to 0. Shape: W^O_h (K, D). | 15 Each head has its own block; 15 Remove a word; 24.3 The experiment | learn/course/ambiguous.ablated; learn/experiments/ablation.stages
bias correction | 偏差修正 | In Adam, the division of the moving averages m and v by 1 − β₁ᵗ and 1 − β₂ᵗ at step t. Both averages start at 0, and without the correction they are too small in the first steps. | 13 The bias correction | training/optimizer.Adam
exposure bias | 曝光偏差 | The difference between training and decoding: in training the decoder reads correct prefixes only, but in decoding it reads its own tokens, which may be wrong. | 14 Exposure bias |
KV cache | KV 缓存 | The keys and values of all earlier positions, stored in each decoder layer. With them, a step of decoding computes one position only. Shapes: k and v (B, H, T, K). | 14 Keep the keys | generation/state.CachedState
momentum | 动量 | A sum of the gradients in which older ones have less weight, used in place of the gradient: m ← β m + g, θ ← θ − lr · m. | 13 Momentum |
optimizer | 优化器 | The algorithm that changes the parameters with the help of the gradient, such as Adam. | 13 From a gradient | training/optimizer.Adam
overfitting | 过拟合 | A model overfits if it is much better on the sentences of its training set than on other sentences. | 13 The loop |
search error, model error | 搜索误差、模型误差 | Two reasons for a wrong translation. In a search error, the reference has a higher probability than the translation, and the search missed it. In a model error, the reference has a lower probability. | 14 Search errors and model |
stochastic gradient descent (SGD) | 随机梯度下降 | Gradient descent with the gradient for a batch in place of the gradient for the whole training set: θ ← θ − lr · g. | 13 From a gradient |
adaptive halting | 自适应停止 | A method by which each position computes the number of its steps. Step n gives the position a state s_n and a halting probability p_n. The position halts at the first step M with p_1 + … + p_M ≥ 1 − ε. Its output is Σ_{n<M} p_n s_n + R s_M with the remainder R = 1 − Σ_{n<M} p_n. Shapes: states (N, B, T, D) → (B, T, D). | 21.4 | functional/halting.mix_states
arithmetic intensity | 算术强度 | The number of operations of a computation divided by the number of bytes that it reads and writes. It is n / 6 for the product of two n × n matrices in float32, and 1 / 12 for their sum. | 16 Arithmetic intensity | bench/floor.Product
activation patching | 激活修补 | An experiment with two inputs: one activation of the run on the second input replaces that of the run on the first. The change of a score, such as a logit difference, is the effect of the activation. | 15.6 | lenses/patching.patching_of
additive attention | 加性注意力 | The attention of Bahdanau et al., in which a small network computes the scores: e_ts = v · tanh(h_{t−1} W + m_s U). The query is the decoder's previous state h_{t−1}, and the keys and values are the encoder's states m_s. | 4.6; 17 Attention to the states | nn/attention/luong.GlobalAttention
attribution patching | 归因修补 | The estimate of all effects of activation patching by one backward pass: ⟨a′ − a, da⟩, where a′ is the activation of the other input and da the gradient of the score. Shapes: a (T, D) → (T,). | 15.6 | lenses/patching.Effects
backpropagation through time | 随时间反向传播 | The backward pass of a recurrent network, from the last time step to the first. The gradient of the state at time t is the sum of two gradients: one from the output at time t, and one from the state at time t + 1. | 17 A whole sentence, backward | nn/recurrent.Recurrent
baseline | 基线 | In the score-function estimator, a number b that is subtracted from the reward r: (r − b) ∇ log p(s). If b does not depend on the sample s, the expected value stays the same. A good baseline reduces the variance. In an evaluation, a simple method with which a model is compared. In integrated gradients, the input at which the line begins: all its vectors are 0. | 15 Does the model know; 19 Why the mean; 25 How much | nn/attention/hard.MovingBaseline
data-parallel threads | 数据并行线程 | Threads that each compute the gradient of a part of the batch with a copy of the model. The gradient of the batch is Σ_i (n_i / n) dL_i, where part i has n_i of the n tokens. | 16 Threads | training/workers.Workers
direct logit attribution | 直接 logit 归因 | The terms of a logit as a sum over the embedding, the heads, the feed-forward networks and the biases of a model. The statistics of the norms count as constants. Shape: the logit is a number, and so is each term. | 15.5 | lenses/attribution.attribution_of
gradient times input | 梯度乘输入 | The product ⟨dz, z⟩ of an array z with its gradient dz. To first order, it is the decrease of the output if z is set to 0. Shapes: z and dz (T, d_v) → a number. | 15 The gradient of δ; 25 How much | pretrained/saliency.gradient_times_input
GRU | 门控循环单元 | The gated recurrent unit, a recurrent cell. Its new state is a weighted mean of the old state h and a candidate n: h′ = z h + (1 − z) n, with z = sigmoid(z_x + z_h), r = sigmoid(r_x + r_h) and n = tanh(n_x + r n_h). The index x marks linear maps of the token, and h those of the old state. This is the reset-after variant, as in PyTorch. Shapes: h (B, N) → (B, N). | 17 The GRU cell | functional/recurrent.gru_cell
hard attention | 硬注意力 | Attention that reads a single value instead of a mean: z = v_s, where the position s is sampled with the attention weights as probabilities. Sampling has no derivative, so training needs an estimate of the gradient. | 19 Soft and hard attention | functional/hard.hard_attend
induction head | 归纳头 | A head that attends to the token which followed an equal token before, and copies it. Its keys read what a head of an earlier layer has written: the previous token of each position (K-composition). Shape: the weights are (T, T), with a stripe. | 15.7 | learn/experiments/induction.attention_scores
input feeding | 输入馈送 | A recurrent decoder in which the input of step t is the embedding of the last token concatenated with the attention output of step t − 1. | 17 Attention to the states | models/recurrent/decoder.RecurrentDecoder
latent attention | 潜在注意力 | Attention whose weights are computed in two stages. The latent weights l = softmax over j of u · e_j are the importance of each token. Row i of the matrix D is a softmax over all tokens, which says to which tokens token i points. The output is Σ_j w_j v_j, where w is D l or Dᵀ l, divided by its sum. Shapes: l (S,), D (S, S), v (S, d_v) → (d_v,). | 20.2; 20.3; 20.4 | functional/latent.latent_attend
local attention | 局部注意力 | Attention to the positions in a window [p_t − d, p_t + d] only. The centre is either p_t = t, or it is predicted: p_t = S · sigmoid(v · tanh(h_t W)). If it is predicted, the weight of position s is multiplied by exp(−(s − p_t)² / (2σ²)) with σ = d / 2. | 18 Why local attention; 18 local-p | nn/attention/luong.LocalPredictive
LSTM | 长短期记忆网络 | The long short-term memory, a recurrent cell with a hidden state h and a cell state c: c′ = f c + i g and h′ = o tanh(c′). The forget gate f, the input gate i and the output gate o are sigmoids of linear maps of the token and of h, and the candidate g is a tanh of such a map. Shapes: c and h (B, N). | 17 The LSTM cell | functional/recurrent.lstm_cell
logit lens | logit 透镜 | The prediction of a model after each of its layers: the last norm and the output matrix applied to the vectors after that layer. Shapes: x (B, T, D) → logits (B, T, V). | 15.5 | lenses/logit_lens.layer_logits
logit difference | logit 差 | The number δ = logit(right word) − logit(wrong word) = log(p(right word) / p(wrong word)). The model prefers the right word if δ > 0. Shapes: logits (B, T, V) → (B,). | 15 Does the model know |
memory bandwidth | 内存带宽 | The number of bytes that the memory delivers to the processor per second. It limits computations with a small arithmetic intensity. | 16 Arithmetic intensity |
masked language model | 掩码语言模型 | An encoder that is trained to predict tokens that are hidden in its input, from the tokens on both sides. An example is BERT. Shapes: ids (B, T) → logits (B, T, V). | 21.6 | models/bert.Bert
causal language model | 因果语言模型 | A decoder without cross-attention that is trained to predict the next token from the tokens before it. An example is GPT. Shapes: ids (B, T) → logits (B, T, V). | 21.6 | models/gpt/model.GPT
rank correlation | 秩相关 | Spearman's correlation coefficient of the ranks of two lists of numbers. It is 1 if both have the same order and −1 if the orders are opposite. | 15 Are the heads |
delta rule | delta 规则 | A rule for a memory S that corrects itself: before a value is written, the value that the memory holds for the key is subtracted. S_t = S_{t−1} + β_t k_tᵀ (v_t − k_t S_{t−1}), and y_t = q_t S_t. Shapes: S (d_k, d_v), k (T, d_k), v (T, d_v), β (T,). | 26.2 | functional/linear_attention.delta_rule
linear attention | 线性注意力 | Causal attention without the softmax: y_t = Σ_{s≤t} (q_t · k_s) v_s = q_t S_t, where each token adds k_tᵀ v_t to the memory S_t. Shapes: q and k (T, d_k), v (T, d_v), S (d_k, d_v) → (T, d_v). | 26.2 | functional/linear_attention.linear_attention
mixture of experts (MoE) | 混合专家 | Many feed-forward networks, the experts, of which each token uses the k that a router chooses: y = Σ_j w_j expert_j(x). Shapes: x (..., D) → y (..., D). | 26.3 | nn/experts.MixtureOfExperts
router | 路由器 | The linear map that scores the experts of a mixture for each token. The weights of the chosen experts are their probabilities, softmax(x W_r), divided by their sum. Shapes: x (N, D), W_r (D, E) → weights (N, k). | 26.3 | functional/experts.route
load-balancing loss | 负载均衡损失 | A term of the loss that keeps all E experts busy: E Σ_e f_e P_e, where f_e is the number of tokens that chose expert e, divided by N, and P_e its mean probability. It is k if all are equally busy. | 26.3 | functional/experts.load_balancing
multi-head latent attention (MLA) | 多头潜在注意力 | Multi-head attention whose keys and values are computed from a latent vector c = norm(x W) of each token: k_h = [rotate(x W_R); c W_K], v_h = c W_V. In decoding, the queries absorb W_K, and the KV cache keeps c and the rotated part only. Shapes: c (B, T, C), the rotated part (B, T, R), q and k (B, H, T, R + K). | 26.4 | nn/attention/multi_head_latent.MultiHeadLatentAttention
Muon | | An optimizer for the matrices inside layers. It orthogonalizes the momentum M by Newton-Schulz iterations, so that all singular values of the update are near 1: θ ← θ − lr · .2 √max(I, O) · orthogonalize(M). Shapes: M has the shape (I, O) of the matrix. | 26.1 | training/optimizer.Muon
Newton-Schulz iteration | Newton-Schulz 迭代 | An iteration that brings the singular values of a matrix near 1 and keeps its singular vectors: X ← a X + b (X Xᵀ) X + c (X Xᵀ)² X. Shape: X (I, O). | 26.1 | functional/muon.orthogonalize
RMS normalization | RMS 归一化 | Layer normalization without the subtraction of the mean and without the bias: y = gain · x / √(mean of x² + eps). Shapes: x (..., D), gain (D,) → (..., D). | 23.1 | functional/rms_norm.rms_norm
rotary positions (RoPE) | 旋转位置编码 | The rotation of queries and keys by their positions. Pair i of the K numbers of a vector at position t is rotated by the angle t · base^(−2i/K), where base is 10,000 by default. The score of two rotated vectors depends on their distance only. Shapes: (B, H, T, K) → (B, H, T, K). | 23.2 | functional/rotary.rotate; nn/positions.RotaryPositions
gated feed-forward network | 门控前馈网络 | A feed-forward network with three matrices: y = (f(x W_g) ⊙ x W_v) W₂, where ⊙ multiplies entry by entry. In SwiGLU, f(u) = u · sigmoid(u); in GEGLU, f is GELU. Shapes: x (B, T, D), W_g and W_v (D, F), W₂ (F, D). | 23.3 | nn/feed_forward.GatedFeedForward; functional/gated.swiglu
grouped-query attention | 分组查询注意力 | Multi-head attention in which each head of keys and values is shared by R = H / G query heads: query head h uses the key head ⌊h / R⌋. With G = 1 it is called multi-query attention. The gradient of a shared key is the sum over its query heads. Shapes: q (B, H, T, K), k and v (B, G, S, K). | 23.4 | functional/heads.repeat_heads; nn/attention/multi_head.MultiHeadAttention
sliding window | 滑动窗口 | A limit W of causal attention: position t attends to itself and to the W − 1 positions before it, so mask[t, s] is True if t − W < s ≤ t. Shape: (T, T). | 23.4 | functional/masks.causal_mask
AdamW | | Adam with decoupled weight decay: θ ← θ − lr · λ θ, followed by Adam's step with the gradient of the loss. An L2 penalty would be divided by √v̂. Shapes: as in Adam. | 23.5 | training/optimizer.AdamW; functional/adam.decay_weights
parameter groups | 参数组 | Sets of parameters with different settings of the optimizer. An example: matrices decay, and gains and biases do not. | 23.5 | training/optimizer.AdamW
prefill | 预填充 | The pass in which a decoder-only model reads all tokens of a prompt together and stores their keys and values in the KV cache. Shapes: ids (B, T) → the logits (B, V) of the token after the prompt. | 24.4 | models/gpt/model.GPT
decode step | 解码步 | The pass in which a decoder reads the newest token of each text, appends its key and value to the KV cache, and computes the logits of the next token. Shapes: ids (B,) → (B, V). | 24.4 | models/gpt/model.GPT
ring buffer | 环形缓冲区 | A store with W places in which item t goes to place t mod W, and replaces item t − W. It holds the keys and values of a sliding window. Shapes: k and v (W, K). | 24.4 |
relative positions | 相对位置 | Position information about pairs of tokens. For each distance s − t, limited to [−c, c], a learned vector a is added to the key and another one to the value. The score is q_t · (k_s + a_{s−t}) / √K. Shape: a table (2c + 1, K) of these vectors. | 21.1; 21.2 | functional/relative.relative_attention
ponder cost | 思考代价 | The number of steps of a position plus its remainder, M + R (see adaptive halting). A loss that contains the ponder cost makes the model use fewer steps. Shape: (B, T). | 21.4; 21.5 | functional/halting.MixCache
saliency | 显著性 | The gradient of an output of the model with respect to its input or to an intermediate array. | 15 One backward pass |
score-function estimator | 得分函数估计 | An estimate of the gradient of an expected value over a sample s, also called REINFORCE: ∇ E[f(s)] = E[f(s) ∇ log p(s)]. | 19 The derivation | functional/hard.score_function
recurrent neural network | 循环神经网络 | A network that reads a sequence one position after another. It computes each hidden state from the input at this position and from the hidden state before it: h_t = cell(x_t, h_{t−1}). Shapes: x (B, T, D) → h (B, T, N). | 17 What came before | nn/recurrent.Recurrent
bidirectional network | 双向网络 | Two recurrent layers that read a sequence in opposite directions. At each position, their hidden states are concatenated. Shapes: x (B, T, D) → (B, T, 2N). | 17 Reading in both directions | nn/recurrent.Bidirectional
vanishing gradient | 梯度消失 | A gradient that becomes exponentially small on its way back through many time steps or layers, since each of them multiplies it by a Jacobian that shortens it. If the Jacobians lengthen it, it is an exploding gradient. | 17 The gradient from one | functional/recurrent.lstm_cell_backward
entropy regularization | 熵正则化 | A term −λ H that is added to the loss, with the entropy H = −Σ_i a_i log a_i of the attention weights. It favours equal weights, so that hard attention draws many positions early in training. | 19 Why the entropy | functional/hard.entropy
straight-through estimator | 直通估计 | An estimate of the gradient where a value is sampled. The forward pass uses the sample, and the backward pass uses the gradient of the weighted mean. The estimate has a small variance, but it is biased. | 19 An estimate without rewards | functional/hard.straight_through_backward
Universal Transformer | | A Transformer that applies one and the same layer repeatedly, instead of N different layers. Adaptive halting determines the number of repetitions for each position. | 21.4 | models/universal.UniversalEncoder
BLEU | | A score of translations from 0 to 100: 100 · BP · (p_1 p_2 p_3 p_4)^(1/4), where p_n is the share of the n-grams in the translations that also occur in the references, and BP is the brevity penalty. | 22.3 | generation/bleu.bleu
brevity penalty | 简短惩罚 | The factor of BLEU that lowers the score of translations that are too short: BP = min(1, exp(1 − r/c)), with c words in the translations and r words in the references. | 22.3 |
byte-pair encoding | 字节对编码 | An algorithm that builds a vocabulary of subwords. It starts with single characters and repeatedly joins the most frequent pair of adjacent pieces into a new piece. | 22.1 | data/subwords.Pieces
floor | 下界 | A lower bound for the time of a training step: the time of its matrix products alone. | 16 A lower bound | bench/floor.floor_step
kernel | 内核 | A fast implementation of a forward and a backward function, which gives the same results as the plain implementation up to rounding. | 16 Plain pairs and kernels | kernels/choice.choose
cache blocking | 缓存分块 | The application of several operations to one block of an array after another, while the block is in the processor's cache. | 16 Blocks that fit | kernels/cpu/blocks.blocks
packing | 紧凑排列 | The removal of padding from a batch: the N tokens that are not padding are copied into one array. Layers that treat each position separately can then work on this array. Shapes: (B, T, D) → (N, D). | 16 No computation for padding | functional/packing.pack
subword | 子词 | A part of a word that is a token. Every word can be written as a sequence of subwords. | 22.1 | data/subwords.SubwordCodec
BLAS | | Basic Linear Algebra Subprograms, the library with which NumPy multiplies matrices. It uses several threads of its own. | 16 A lower bound; 16 Use matrix products |
online softmax | | A softmax that is computed block by block, with a running maximum m and a running sum Z. A block x changes them to m′ = max(m, max x) and Z′ = Z · exp(m − m′) + Σ exp(x − m′). | 16 The problem; 16 The forward pass |
W^O | | The matrix that multiplies the concatenated outputs of the heads in multi-head attention. Shape: (H·d_v, D). | 7.3 | nn/attention/multi_head.MultiHeadAttention
bag of words | 词袋 | The words of a text without their order. A model that sees only the bag of words, such as the mean of the word vectors, gives the same result for every order of the words. Shapes: vectors (B, S, D) → mean (B, D). | 20.1 | models/if_then/descriptions.BagOfWords
length generalization | 长度泛化 | The ability of a model to solve its task on sequences that are longer than all sequences of its training. | 21.3 | learn/experiments/length_generalization.accuracy_by_length
n-gram | n 元组 | A sequence of n adjacent words or tokens. A sentence of T words has T − n + 1 n-grams. | 22.3 |
checkpoint averaging | 检查点平均 | The mean of the parameters of several checkpoints of one training, used as a model: θ = (θ₁ + … + θ_m) / m. It reduces the random deviations that a large learning rate causes. Shape: (P,), P parameters. | 22.4 | training/averaging.average
beam search problem | 束搜索问题 | The observation that wider beams can give worse translations. The log-probability of a translation is a sum of negative terms, so short translations are favored (length bias), and a wide beam finds them. | 22.5 | generation/beam.beam_search
model card | 模型卡片 | A page with the facts that a user of a trained model needs: its data, their license, the training and the measured scores. | 22.6 | pretrained/card.Card
power law | 幂律 | A function y = a x^−α. If x doubles, y is multiplied by 2^−α. In logarithms it is a straight line with the slope −α. | 24.5 How large | learn/experiments/scaling.fit_power_law
scaling law | 缩放定律 | A function that predicts the loss of a model from its number of parameters N and of training tokens D, such as L = E + A / N^α + B / D^β. | 24.5 | learn/experiments/scaling.measure
irreducible loss | 不可约损失 | The term E of a scaling law, which remains for infinitely many parameters and tokens. For a perfect model it is the entropy of the text. | 24.5 A law with three terms |
least squares | 最小二乘 | The choice of numbers for which the sum of the squared differences between a function and given points is as small as possible. For a linear function the solution is the pseudoinverse of a matrix times the points. Shapes: matrix (N, P), points (N,) → (P,). | 24.5 A straight line | learn/experiments/scaling.fit_power_law
bootstrap | 自助法 | An estimate of the uncertainty of fitted numbers. They are fitted again to many data sets that are drawn at random, such as the fitted curve plus differences drawn from the observed ones. The range of the results is the uncertainty. | 24.5 How certain |
safetensors | | A file format for the tensors of a model: 8 bytes with the length of the header, the header in JSON with the name, dtype, shape and place of each tensor, and the numbers. Reading such a file runs no code of its author. | 25 The file with the weights | interop/tensor_files.stored_tensors
pickle | | A file format of Python for any objects. Loading a pickle can run code that its author put into it, so npformer reads no pickles. | 25 The file with the weights |
fused projection | 融合投影 | One linear map that computes queries, keys and values together. Its weight is W^Q, W^K and W^V side by side. Shapes: x (T, D), weight (D, 3 D) → (T, 3 D). | 25 Queries, keys and values | nn/attention/multi_head.MultiHeadAttention
Conv1D | | The class of linear layers in the GPT-2 of the library transformers: y = x W + b with W (I, O). The class nn.Linear of PyTorch stores W as (O, I) instead. The name is that of a convolution of width 1, which is a linear layer. | 25 Why GPT-2 | interop/families/gpt2.rows
integrated gradients | 积分梯度 | The product of an input vector x_t with the mean gradient on the line from the baseline 0 to the input x: a_t = x_t · ∫ ∂f/∂x_t(α x) dα for α from 0 to 1. Shapes: x_t (D,) → a number. | 25 How much | pretrained/saliency.integrated_gradients
completeness | 完备性 | The property of integrated gradients that the numbers of all input tokens sum to the change of the output: Σ_t a_t = f(x) − f(0). | 25 How much | pretrained/saliency.Saliency
LoRA | 低秩适配 | Low-rank adaptation, a fine-tuning in which a weight W stays as it is, and a product of two narrow matrices beside it learns: y = x (W + s A B). Only A and B get gradients: dB = s (x A)ᵀ dy and dA = xᵀ (s dy Bᵀ). Shapes: W (I, O), A (I, R), B (R, O). | 27.1 | functional/lora.lora_linear; nn/lora.add_lora
quantization | 量化 | The replacement of numbers by whole numbers of few bits and a scale for each group of them: q = round(w / s) with s = max w / (2ⁿ⁻¹ − 1), in absolute values. The error is at most s / 2. Shapes: W (I, O), one scale for each column (1, O). | 27.2 | functional/quantize.quantize
supervised fine-tuning | 监督微调 | The training of a language model on prompts with good answers. The loss is the cross-entropy of the tokens of the answers only. | 27.3 | learn/experiments/addition.fine_tune
pass@k | | The probability that at least one of k drawn answers to a prompt is right. pass@1 is the share of right answers. | 27.3 | learn/experiments/addition.pass_rates
GRPO | | Group relative policy optimization, a training with rewards. It draws G answers to each prompt, and weights the gradient of log p of each by its advantage (r − mean) / std over the group. A KL term keeps the model near a reference. Shape: rewards (P, G) for P prompts. | 27.4 | functional/preferences.grpo; functional/preferences.group_advantages
reward hacking | 奖励作弊 | The result of a training with rewards in which the reward rises, and what it should measure falls. | 27.4 What each part does | learn/experiments/addition.policy_step
DPO | 直接偏好优化 | Direct preference optimization, a training on pairs of a better answer w and a worse one l. The loss is −log σ(m) with m = β [(log p(w) − log p(l)) − (log p_ref(w) − log p_ref(l))]. | 27.5 | functional/preferences.dpo
speculative decoding | 投机解码 | Decoding in which a small model drafts tokens and a large one checks them in one pass. A token x is kept with probability min(1, p(x) / q(x)), and otherwise replaced by a draw from max(0, p − q). The text has the distribution p of the large model. Shapes: p and q (V,). | 27.6 | generation/speculative.speculative_ids
"""  # noqa: E501 - a row of a table is a line

SHAPES = (
    "Letters of shapes: B sentences; T target tokens or queries; S source tokens or keys; D = d_model; "
    "H heads; K the width of a head, or d_k of keys and d_v of values; F = d_ff; V tokens in the vocabulary; "
    "N rows, steps or hidden units."
)


@dataclass(frozen=True)
class Term:
    """A term of the course."""

    name: str
    chinese: str  # "" if Chinese uses the English term
    meaning: str
    lessons: Sequence[SourceLocation]
    code: Sequence[SourceLocation]

    @property
    def names(self) -> list[str]:
        """The names of the term, English and Chinese, that of the current language first."""
        both = [self.name, self.chinese] if self.chinese else [self.name]
        return both if current_language() == ENGLISH else both[::-1]


def definitions() -> list[str]:
    """Return the English definitions, in the order of the table, after the explanation of the letters."""
    return [SHAPES, *(meaning for _, _, meaning, _, _ in table_rows(TERMS))]


def all_terms() -> list[Term]:
    """Return every term, in alphabetical order, with its definition in the current language.

    Raises:
        UserError: If a lesson or a name no longer exists.
    """
    terms = [
        Term(
            name,
            chinese,
            phrase(meaning, GLOSSARY),
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
