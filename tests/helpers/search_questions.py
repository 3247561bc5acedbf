"""Questions that learners type into the search of the site, each with the pages that answer it.

QUESTIONS guided the weights of the ranking. HELD_OUT was written before the weights were chosen, and never
used to choose them: by a beginner, a PyTorch user, and a reader who is not a native speaker of English.
"""

QUESTIONS = {
    "why divide by sqrt": {"lessons/05_3.html"},
    "mask padding": {"lessons/06_1.html"},
    "label smoothing": {"lessons/12_3.html"},
    "softmax denominator": {"lessons/05_1.html", "lessons/05_2.html", "reference/functional.html"},
    "teacher forcing": {"lessons/11_1.html"},
    "gradient vanish": {"lessons/17_3.html"},
    "padding mask wrong": {"lessons/06_1.html", "lessons/06_3.html", "zoo/13.html"},
    "how to check my gradient": {"lessons/00_2.html", "lessons/00_3.html", "reference/checking.html"},
    "what is query key value": {"lessons/04_4.html"},
    "why multiple heads": {"lessons/07_1.html"},
    "layernorm backward": {"lessons/08_2.html"},
    "difference layer norm batch norm": {"lessons/08_5.html"},
    "beam search too short": {"lessons/14_3.html", "lessons/22_5.html"},
    "kv cache memory": {"lessons/24_4.html", "lessons/14_4.html"},
    "rope": {"lessons/23_2.html"},
    "swiglu": {"lessons/23_3.html"},
    "adam bias correction": {"lessons/13_2.html"},
    "learning rate warmup": {"lessons/13_3.html"},
    "gradient clipping": {"lessons/13_3.html"},
    "positional encoding sin cos": {"lessons/03_1.html"},
    "embedding times sqrt d_model": {"lessons/02_2.html"},
    "dropout at inference": {"lessons/08_3.html", "zoo/05.html"},
    "cross entropy gradient p - q": {"lessons/12_2.html"},
    "softmax nan all masked": {"lessons/06_2.html"},
    "perplexity": {"lessons/12_4.html"},
    "bleu score": {"lessons/22_3.html"},
    "byte pair encoding": {"lessons/22_1.html"},
    "top p sampling temperature": {"lessons/24_2.html"},
    "flash attention": {"lessons/16_4.html"},
    "grouped query attention": {"lessons/23_4.html"},
    "weight tying": {"lessons/12_3.html", "lessons/22_2.html", "lessons/02_2.html"},
    "dead relu": {"lessons/09_2.html"},
    "causal mask future leak": {"lessons/06_3.html", "lessons/11_2.html"},
    "pre norm vs post norm": {"lessons/08_4.html"},
    "exposure bias": {"lessons/14_2.html"},
    "gpt from scratch": {"lessons/24_1.html"},
    "load gpt2 from huggingface": {"lessons/25.html"},
    "gradient accumulation": {"lessons/13_4.html", "zoo/16.html"},
    "which token matters saliency": {"lessons/15_4.html", "lessons/25.html"},
    "lstm gates": {"lessons/17_1.html"},
    "npformer.gradcheck": {"reference/checking.html"},
    "translate a sentence": {"lessons/00_1.html", "reference/pretrained.html"},
    "chinchilla scaling law": {"lessons/24_5.html"},
    "MultiHeadAttention": {"reference/nn.html"},
    "what is a jacobian": {"lessons/05_2.html"},
    "注意力": {"lessons/04_1.html", "lessons/05_1.html"},
}

HELD_OUT = {
    # a beginner
    "what does the transformer actually do": {"lessons/00_1.html"},
    "why do we add x back after attention": {"lessons/08_3.html"},
    "how does it choose the next word": {"lessons/14_1.html", "lessons/24_2.html"},
    "what is a token id": {"lessons/01_1.html"},
    "why not just use an rnn": {"lessons/10_4.html", "lessons/17_5.html", "lessons/17_3.html"},
    "how many parameters in the ffn": {"lessons/09_4.html"},
    # a PyTorch user
    "nn.TransformerEncoderLayer norm_first": {"lessons/08_4.html", "lessons/10_1.html"},
    "custom autograd backward": {"lessons/00_2.html", "reference/checking.html"},
    "optimizer.zero_grad": {"lessons/13_4.html", "reference/nn.html"},
    "key_padding_mask": {"lessons/06_1.html", "reference/nn.html"},
    "CrossEntropyLoss ignore_index": {"lessons/12_1.html", "lessons/12_2.html", "reference/functional.html"},
    "view transpose heads wrong": {"lessons/07_2.html", "lessons/07_4.html", "zoo/09.html"},
    # a reader who is not a native speaker
    "sentence order how model know": {"lessons/03_1.html"},
    "decoder see future word problem": {"lessons/06_3.html", "lessons/11_1.html", "lessons/11_2.html"},
    "speed up generate": {"lessons/14_4.html", "lessons/24_4.html"},
    "which word is important for attention": {f"lessons/15_{part}.html" for part in (1, 2, 3, 4)},
    "measure quality of translation": {"lessons/22_3.html"},
    "why word vector multiply root": {"lessons/02_2.html"},
}

MISSPELT = {
    "lable smoothing": {"lessons/12_3.html"},
    "teacher forcin": {"lessons/11_1.html"},
    "perplexitty": {"lessons/12_4.html"},
    "gradeint clipping": {"lessons/13_3.html"},
    "exposre bias": {"lessons/14_2.html"},
    "rotary positons": {"lessons/23_2.html"},
}
