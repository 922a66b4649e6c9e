"""The step block: every value that changes per token, by name, in words of 32 bits.

Kernels read a field as `step.NAME`; the host writes the same words. The header is followed by the
token ids of the step.
"""

HEADER_WORDS = 64

# name -> (word, dtype). Words are never reused for another meaning.
FIELDS: dict[str, tuple[int, str]] = {
    "pos": (0, "u32"),  # position of the first row of this step
    "rows": (1, "u32"),  # rows of this step (1 in decode, up to the chunk in prefill)
    "kv_len": (2, "u32"),  # pos + rows: keys visible to the last row
    "splits": (3, "u32"),  # parts the KV axis is split into by decode attention
    "seed_lo": (4, "u32"),
    "seed_hi": (5, "u32"),
    "draw": (6, "u32"),  # index of the random draw: equal seeds and draws give equal numbers
    "temperature": (7, "f32"),  # 0 means greedy
    "top_k": (8, "u32"),  # 0 means off
    "top_p": (9, "f32"),  # 1 means off
    "min_p": (10, "f32"),  # 0 means off
    "repetition": (11, "f32"),  # 1 means off
    "presence": (12, "f32"),
    "frequency": (13, "f32"),
    "use_bias": (14, "u32"),  # 1 if the logit-bias buffer holds a request's biases
    "sample": (15, "u32"),  # 0: this step does not sample (a prefill chunk that is not the last)
    "out_token": (32, "i32"),  # written by the device, read back by the host
}
