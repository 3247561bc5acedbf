"""The chapters of the course by number, and the lessons of earlier versions, which have other names now."""

from npformer.language import INTERFACE, later, phrase

TITLES = {
    0: later("Introduction"),
    1: later("Words to ids"),
    2: later("Embeddings"),
    3: later("Positions"),
    4: later("Attention as a lookup"),
    5: later("Scaled dot-product attention"),
    6: later("Masks"),
    7: later("Multi-head attention"),
    8: later("Residual connections and layer normalization"),
    9: later("The feed-forward network"),
    10: later("The encoder"),
    11: later("The decoder"),
    12: later("From vectors to tokens"),
    13: later("Training"),
    14: later("Decoding"),
    15: later("What attention learned"),
    16: later("Speed"),
    17: later("Before the Transformer"),
    18: later("Local attention"),
    19: later("Hard attention"),
    20: later("Latent attention"),
    21: later("Relative positions and adaptive depth"),
    22: later("A real translator"),
    23: later("The parts of today's Transformer"),
    24: later("A GPT that writes"),
    25: later("Other people's models"),
    26: later("From Llama to 2026"),
    27: later("From predicting to answering"),
}

# the names of lessons of earlier versions: those that became whole chapters, and others with their parts
SPLIT_LESSONS = (
    "04_attention_as_look_up",
    "05_scaled_dot_product_attention",
    "06_masks",
    "07_heads",
    "08_residuals_and_layer_norm",
    "09_feed_forward",
    "10_the_encoder",
    "11_the_decoder",
    "12_from_vectors_to_words",
    "13_learning",
    "14_decoding",
    "16_faster",
    "17_before_the_transformer",
    "18_looking_locally",
    "19_hard_attention",
    "20_latent_attention",
    "21_beyond_absolute_positions",
    "22_a_real_translator",
)
NEW_NAMES = {
    "00_forward_and_backward": ("00_2_forward_and_backward", "00_3_measured_derivatives"),
    "01_words_to_ids": ("01_1_words_to_ids", "01_2_what_padding_must_not_do"),
    "02_embeddings": ("02_1_embeddings", "02_2_the_scale_and_tied_weights"),
    "03_positions": ("03_1_positions", "03_2_an_offset_is_a_rotation"),
    "15_what_attention_learned": (  # lessons 15.5 to 15.7 are newer
        "15_1_tokens_that_heads_attend_to",
        "15_2_attention_to_the_antecedent",
        "15_3_head_ablation",
        "15_4_gradient_times_input",
    ),
}


def title_of_chapter(number: int) -> str:
    """Return the title of a chapter in the current language."""
    return phrase(TITLES[number], INTERFACE)
