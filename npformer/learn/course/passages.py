"""The index: the lessons and the code for each equation of the paper and passage of the source documents.

A row of a table is: place | summary | lessons | code. A lesson is "5.2" or, for the first lesson of a
chapter, "5". "5 Six steps" is the heading in chapter 5 that begins with these words. Code is
"functional/softmax.softmax": a file of npformer/ and a name in it. Several entries are separated by
semicolons.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from npformer.data.corpus.entries import table_rows
from npformer.errors import unknown
from npformer.learn.course.references import SourceLocation, code_location, items, lesson_location

PAPER = "Attention Is All You Need"

SOURCES = {
    PAPER: """
    1, 2        | recurrence computes the positions one after the other; attention computes them all at once | 10 Why self-attention; 17 What must be computed | models/transformer/model.Transformer; nn/recurrent.Recurrent
    3           | encoder and decoder; the decoder reads its own output | 0.1; 10; 11; 14 From probabilities | models/transformer/stacks.Encoder; models/transformer/stacks.Decoder
    3.1 encoder | LayerNorm(x + Sublayer(x)), N = 6 layers | 8 The passage; 10 One layer; 10 The stack; 10 What a second | nn/norm.AddNorm; models/transformer/layers.EncoderLayer
    3.1 decoder | three sublayers; position i depends only on outputs before i | 11 Both are needed; 11 A whole decoder layer | models/transformer/layers.DecoderLayer; functional/masks.causal_mask
    3.2         | an output is a weighted sum of values | 4 Query, key and value | functional/attention.attention
    3.2.1, (1)  | Attention(Q, K, V) = softmax(QKᵀ/√dₖ)V | 5 All tokens at once; 5 The backward pass | functional/attention.attention; functional/attention.attention_backward
    3.2.1       | additive and dot-product attention | 4 Four ways | functional/similarity.dot_similarity; functional/similarity.perceptron_similarity
    3.2.1, 4    | dot products grow with dₖ (footnote 4) | 5 What the division by √dₖ does | functional/attention.attention
    3.2.2       | MultiHead(Q, K, V) = Concat(head₁ … headₕ)W^O | 7 The passage; 7 What W^O does; 7 The backward pass | nn/attention/multi_head.MultiHeadAttention; functional/heads.split_heads
    3.2.3       | three uses of attention; illegal connections set to −∞ | 6 The forward pass with a mask; 11 Encoder-decoder attention | functional/masks.mask_scores; functional/masks.causal_mask
    3.3, (2)    | FFN(x) = max(0, xW₁ + b₁)W₂ + b₂; two convolutions of kernel 1 | 9 The passage; 9 As a convolution; 9 What it costs | nn/feed_forward.FeedForward; functional/activations.relu
    3.4         | embeddings times √d_model; the same weights before the softmax | 2 Why √D; 2 Two uses; 12 Tied weights | nn/embedding.Embedding; nn/embedding.TiedProjection
    3.5         | PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i + 1) = cos | 3 The table; 3 An offset; 3 Learned | functional/positions.sinusoids; nn/positions.LearnedPositions
    4, table 1  | complexity, sequential operations, path length | 10 Why self-attention | functional/attention.attention
    5.1         | byte-pair encoding, one vocabulary for both languages | 22 Subwords; 22 One embedding table | data/subwords.Pieces; data/subwords.SubwordCodec
    5.1         | sentences of similar length in a batch | 22 Batches by the number | data/loader.plan_batches
    5.2         | 0.4 seconds a step, 100,000 steps | 16 The passage | training/trainer.Trainer
    5.3         | Adam with β₁ = .9, β₂ = .98, ε = 1e-9 | 13 The definition; 13 The bias correction; 13 The length of a step | training/optimizer.Adam
    5.3, (3)    | lrate = d^−.5 · min(step^−.5, step · warmup^−1.5) | 13 The learning-rate schedule | training/optimizer.warmup
    5.4         | residual dropout; label smoothing .1 | 8 Where dropout sits; 12 Label smoothing | functional/dropout.dropout; functional/losses.smooth_targets
    6.1         | one model averaged from the last checkpoints | 22 Checkpoint averaging | training/averaging.average
    6.1         | beam 4, length penalty .6, at most input length + 50 words | 14 Beam search; 14 A score in place | generation/beam.beam_search; generation/search.length_limits
    6.2, table 3| variations: heads, dₖ, size, dropout, learned positions | 7 What several heads cost; 3 Learned; 10 How many | models/transformer/config.TransformerConfig
    appendix    | attention visualizations: heads that attend to the antecedent of "its" | 15 Hit rates and baselines; 15 Each head has its own block | generation/evaluation.strongest_head; plots/attention_lines.word_lines
    """,  # noqa: E501 - a row of a table is a line
    "一步步解析Attention is All You Need!": """
    1           | the whole architecture | 10; 11 | models/transformer/model.Transformer
    2           | Position Embedding | 3 Three layouts; 2 The row of the padding | functional/positions.sinusoids; nn/positions.FixedPositions
    3.1         | attention in brief: similarity, softmax, weighted sum; four similarities | 4 Four ways | nn/attention/similarity.Similarity; functional/similarity.concat_similarity
    3.2, 1      | first step: the embedding, with zeros for padding | 2 The row of the padding; 6 A mask computed | nn/embedding.Embedding; functional/masks.mask_from_embeddings
    3.2, 2      | second step: Q, K and V | 4 Query, key and value; 7 All heads | nn/attention/multi_head.MultiHeadAttention
    3.2, 3      | third step: similarities, divided by √dₖ | 5 Six steps; 5 What the division by √dₖ does | functional/attention.attention
    3.2, 4      | fourth step: masks of keys, of the future and of queries | 6 Numbers in place; 6 The query mask | functional/tutorial_masks.fill_scores; functional/tutorial_masks.tutorial_attention
    3.2, 5      | fifth step: the weighted sum | 5 All tokens at once | functional/attention.attention
    3.3         | heads, split and concatenated on the batch axis | 7 The other way | functional/heads.split_heads_on_batch; functional/heads.merge_heads_on_batch
    4           | the feed-forward network as two convolutions | 9 As a convolution | nn/feed_forward.FeedForward
    5           | the encoder | 10 One layer | models/transformer/stacks.Encoder
    6           | the decoder | 11 Shifted right; 11 A whole decoder layer | models/transformer/stacks.Decoder
    7           | the output: label smoothing, loss and accuracy over tokens that are not padding | 12 The mean; 12 Label smoothing | functional/losses.cross_entropy; training/evaluation.evaluate
    """,  # noqa: E501 - a row of a table is a line
    "图解transformer": """
    宏观结构    | the structure as a whole: six encoders, six decoders | 0.1 The architecture; 10 The stack; 11 | models/transformer/model.Transformer
    词向量      | word vectors, padding and truncation | 1 Sentences to one array; 2 A table | data/loader.pad; nn/embedding.Embedding
    位置向量    | position vectors, halves and interleaved | 3 Three layouts | functional/positions.sinusoids
    编码器      | the encoder: self-attention, then a feed-forward network for each position | 10 One layer; 9 Each token | models/transformer/layers.EncoderLayer
    概览        | the antecedent of "it": the animal was too tired | 15 The passages; 15 The example of the source documents | generation/evaluation.strongest_head
    细节        | six steps with queries, keys and values | 5 Six steps | functional/attention.attention
    矩阵计算    | the six steps as products of matrices | 5 All tokens | functional/attention.attention
    多头        | eight heads, Z0 … Z7, concat and W^O | 7 The passage; 7 What W^O does | nn/attention/multi_head.MultiHeadAttention
    代码实例    | 64 sentences, 12 queries, 10 keys, width 300 | 7 The shapes of the example | nn/attention/multi_head.MultiHeadAttention
    残差连接    | residuals and layer norm | 8 The residual; 8 The passage | nn/norm.AddNorm; functional/norm.layer_norm
    解码器      | the decoder token by token; the origin of K and V | 11 Encoder-decoder attention; 14 Greedy search; 14 Keep the keys | models/transformer/layers.DecoderLayer; generation/greedy.greedy
    线性层      | logits, softmax, the most probable token | 12 Vector, logits | functional/softmax.softmax; functional/linear.linear
    损失函数    | "merci", "je suis étudiant", greedy and beam search | 12 How wrong; 12 Trained; 14 Greedy search; 14 Beam search | functional/losses.cross_entropy; generation/beam.beam_search
    """,  # noqa: E501 - a row of a table is a line
    "Attention机制详解（二）": """
    整体结构    | the idea and the structure: the word bank attends to river | 15 And "bank"; 10 | models/transformer/model.Transformer
    Self-Attention | queries, keys and values; scaled dot products; heads | 4 Why a token; 5 What the division by √dₖ does; 7 The passage | functional/attention.attention; nn/attention/multi_head.MultiHeadAttention
    其他细节    | positions, masks, residuals, layer norm | 3 The table; 6 The forward pass with a mask; 8 Before or after | functional/positions.sinusoids; nn/norm.AddNorm
    源码        | tensor2tensor: norm before the sublayer, positions in halves | 8 Before or after; 3 Three layouts | models/transformer/sequences.Postprocess; functional/positions.sinusoids
    参考资料    | relative positions, the Universal Transformer | 21 Why relative positions; 21 Two operations; 21 Two tasks; 21 One layer; 21 A task that needs several | functional/relative.relative_attention; models/universal.UniversalEncoder
    """,  # noqa: E501 - a row of a table is a line
    "The components of the Transformer": """
    软硬注意    | soft and hard attention | 19 Soft and hard attention; 19 The derivation; 19 Argmax, or go on drawing | functional/attend.attend; functional/hard.hard_attend
    全球关注    | global attention (Luong) | 17 Attention to the states | nn/attention/luong.GlobalAttention; models/recurrent/model.RecurrentTranslator
    当地的关注  | local attention (Luong) | 18 local-m; 18 local-p; 18 Where is there no derivative; 18 A small task | nn/attention/luong.LocalMonotonic; nn/attention/luong.LocalPredictive
    潜在的注意力| latent attention | 20 The task; 20 Why two stages; 20 The two stages; 20 An ablation | functional/latent.latent_attend; nn/attention/latent.LatentAttention
    单词嵌入    | word embeddings | 2 A table | nn/embedding.Embedding
    模型架构    | encoder and decoder | 10; 11 | models/transformer/model.Transformer
    自我关注    | self-attention without parameters: yᵢ = Σ wᵢⱼ xⱼ | 4 Attention without | functional/attention.attention
    查询、值和键| queries, keys and values as retrieval | 4 From a dictionary | nn/attention/multi_head.MultiHeadAttention
    成比例的点积| scaled dot-product attention; a mask of −1e9 | 5 All tokens; 6 Numbers in place | functional/attention.attention; functional/tutorial_masks.fill_scores
    多头注意力  | split, attend, concatenate, project | 7 All heads | nn/attention/multi_head.MultiHeadAttention
    位置编码    | sinusoids | 3 The table | functional/positions.sinusoids
    编码器      | the encoder, with layer norm against batch norm | 8 Why not batch norm; 10 One layer | models/transformer/layers.EncoderLayer; functional/norm.layer_norm; nn/norm.BatchNorm
    解码器      | the decoder, both masks | 11 Both are needed; 6 The forward pass with a mask | models/transformer/layers.DecoderLayer
    结论        | what comes next: BERT | 21 Half of a Transformer | models/bert.Bert
    """,  # noqa: E501 - a row of a table is a line
}


@dataclass(frozen=True)
class Passage:
    """An equation or a passage, with the lessons and the code that treat it."""

    source: str
    place: str
    text: str
    lessons: Sequence[SourceLocation]
    code: Sequence[SourceLocation]

    @property
    def searched(self) -> str:
        """The text that a search goes through, in lower case."""
        return " ".join([self.source, self.place, self.text, *(place.name for place in self.code)]).lower()


def all_passages() -> list[Passage]:
    """Return every passage, source by source.

    Raises:
        UserError: If a lesson, a heading or a name no longer exists.
    """
    return [
        Passage(
            source,
            place,
            text,
            [lesson_location(item) for item in items(lessons)],
            [code_location(item) for item in items(code)],
        )
        for source, table in SOURCES.items()
        for place, text, lessons, code in table_rows(table)
    ]


def find_passages(word: str) -> list[Passage]:
    """Return the passages whose place, text or code contains a word.

    Raises:
        UserError: If there is none.
    """
    query = word.strip().lower()
    found = [passage for passage in all_passages() if query and query in passage.searched]
    if not found:
        raise unknown("passage", word, (), "npformer index")
    return found
