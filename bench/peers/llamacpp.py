"""llama.cpp through llama-cpp-python's low-level calls, as fast as its own bench program."""

import ctypes

import llama_cpp as llama
import numpy as np
import protocol


class LlamaCpp:
    def __init__(self, options):
        self._silence = llama.llama_log_callback(lambda *_: None)  # kept alive: C calls it
        llama.llama_log_set(self._silence, None)
        llama.llama_backend_init()
        self._model = llama.llama_model_load_from_file(
            options.model.encode(), llama.llama_model_default_params()
        )
        if not self._model:
            raise SystemExit(f"llama.cpp cannot load {options.model}")
        self._threads, self._context, self._room, self._sequences = options.threads, None, 0, 1
        self._held: list[int] = []
        self.vocab = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(self._model))
        self.facts = {
            "version": f"llama-cpp-python {llama.__version__}",
            # The output is tied to the embedding in all files that are compared.
            "weight_bytes": llama.llama_model_size(self._model),
            "kv_bytes_per_position": self._kv_bytes(),
        }
        self._fit(1, 1)

    def prefill(self, ids):
        self._fit(len(ids) + 1, 1)
        self._keep(0)
        return protocol.timed(lambda: self._append(ids))

    def decode(self, ids, count):
        self._fit(len(ids) + count, 1)
        self._keep(min(protocol.common(self._held, ids), len(ids) - 1))
        token = self._append(ids[len(self._held) :])

        def steps():
            nonlocal token
            for _ in range(count):
                token = self._append([token])

        return protocol.timed(steps)

    def batch(self, prompts, count):
        each = len(prompts[0]) + count
        self._fit(each, len(prompts))
        self._keep(0)
        for i, ids in enumerate(prompts):
            tokens = self._forward([(t, p, i) for p, t in enumerate(ids)], [len(ids) - 1])
            prompts[i] = [*ids, *tokens]

        def steps():
            for position in range(each - count, each):
                rows = [(ids[-1], position, i) for i, ids in enumerate(prompts)]
                for ids, token in zip(prompts, self._forward(rows, range(len(rows))), strict=True):
                    ids.append(token)

        times = protocol.timed(steps)
        self._room = 0  # the next cell wants a cache of one sequence
        return times

    def _kv_bytes(self) -> int:
        model = self._model
        rows = llama.llama_model_n_embd(model) // llama.llama_model_n_head(model)
        key = b"llama.attention.key_length"
        text = ctypes.create_string_buffer(32)
        if llama.llama_model_meta_val_str(model, key, text, 32) > 0:
            rows = int(text.value)
        layers = llama.llama_model_n_layer(model)
        return 2 * layers * llama.llama_model_n_head_kv(model) * rows * 2  # f16

    def _fit(self, positions: int, sequences: int) -> None:
        """Make a cache with that much room; its memory is taken at once, so it is not larger."""
        if positions <= self._room and sequences == self._sequences:
            return
        if self._context:
            llama.llama_free(self._context)
        self._room, self._sequences, self._held = protocol.room(positions), sequences, []
        params = llama.llama_context_default_params()
        params.n_ctx = self._room * sequences
        params.n_seq_max = sequences
        params.n_batch = max(2048, self._room)
        params.n_threads = params.n_threads_batch = self._threads
        self._context = llama.llama_init_from_model(self._model, params)
        if not self._context:
            raise SystemExit("llama.cpp cannot make a context")
        self._append([5])
        self._keep(0)

    def _keep(self, length: int) -> None:
        """Forget what the cache holds beyond `length`."""
        memory = llama.llama_get_memory(self._context)
        llama.llama_memory_seq_rm(memory, 0, length, -1)
        del self._held[length:]

    def _append(self, ids: list[int]) -> int:
        """Append `ids` to sequence 0; returns the likeliest next token."""
        tokens = (llama.llama_token * len(ids))(*ids)  # the batch only points at it
        self._decode(llama.llama_batch_get_one(tokens, len(ids)))
        self._held += ids
        return self._likeliest(-1)

    def _forward(self, rows: list[tuple[int, int, int]], wanted) -> list[int]:
        """Rows of (token, position, sequence); the likeliest next token of the wanted ones."""
        batch = llama.llama_batch_init(len(rows), 0, 1)
        batch.n_tokens = len(rows)
        for i, (token, position, sequence) in enumerate(rows):
            batch.token[i], batch.pos[i] = token, position
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, sequence
            batch.logits[i] = i in wanted
        self._decode(batch)
        llama.llama_batch_free(batch)
        return [self._likeliest(i) for i in wanted]

    def _decode(self, batch) -> None:
        code = llama.llama_decode(self._context, batch)
        if code != 0:
            raise SystemExit(f"llama_decode returned {code}")

    def _likeliest(self, row: int) -> int:
        logits = llama.llama_get_logits_ith(self._context, row)
        pointer = ctypes.cast(logits, ctypes.POINTER(ctypes.c_float))
        return int(np.ctypeslib.as_array(pointer, (self.vocab,)).argmax())


if __name__ == "__main__":
    protocol.serve(LlamaCpp, protocol.arguments(__doc__))
