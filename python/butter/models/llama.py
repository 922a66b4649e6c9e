"""Llama 3.x, SmolLM2 and every checkpoint that calls itself LlamaForCausalLM."""

from ..layers import Attention, Embedding, Linear, Residual, RMSNorm, SwiGLU
from ..registry import TextConfig, family

# Old checkpoints store the rotary frequencies, which follow from the config.
ROTARY = r"\.rotary_emb\.inv_freq$"


class Block:
    def __init__(self, cfg, w):
        self.attn = Attention(cfg, w / "self_attn")
        self.mlp = SwiGLU(w / "mlp", cfg.hidden_size, cfg.intermediate_size, bias=cfg.mlp_bias)
        self.norm1 = RMSNorm(w / "input_layernorm", cfg.hidden_size, cfg.rms_norm_eps)
        self.norm2 = RMSNorm(w / "post_attention_layernorm", cfg.hidden_size, cfg.rms_norm_eps)

    def record(self, p, h, kv):
        h = h + self.attn.record(p, self.norm1.record(p, h), kv)
        return h + self.mlp.record(p, self.norm2.record(p, h))


@family("llama", architectures=("LlamaForCausalLM",), config=TextConfig, ignores=(ROTARY,))
class Llama:
    def __init__(self, cfg, w):
        hidden, vocab = cfg.hidden_size, cfg.vocab_size
        layers = range(cfg.num_hidden_layers)
        self.embed = Embedding(w / "model.embed_tokens", vocab, hidden)
        self.blocks = [Block(cfg, w / f"model.layers.{i}") for i in layers]
        self.norm = RMSNorm(w / "model.norm", hidden, cfg.rms_norm_eps)
        if cfg.tie_word_embeddings:
            self.head = self.embed.tied()
            (w / "lm_head.weight").ignore()  # some checkpoints store the table twice
        else:
            self.head = Linear(w / "lm_head", vocab, hidden)

    def record(self, p, tokens, caches) -> Residual:
        """Record one forward pass: tokens [T] to the last hidden state [T, hidden]."""
        h = self.embed.record(p, tokens)
        for i, (block, kv) in enumerate(zip(self.blocks, caches, strict=True)):
            p.layer(i)
            h = block.record(p, h, kv)
        return h

    def logits(self, p, h):
        """The last hidden state [T, hidden] to logits [T, V]."""
        return self.head.record(p, self.norm.record(p, h))
