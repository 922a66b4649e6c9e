"""llama.cpp through llama-cpp-python's low-level calls, as fast as its own bench program."""

import ctypes

import llama_cpp as llama
import numpy as np
import protocol

ROOM = 256  # contexts grow in such steps


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
        self._threads, self._context, self._room = options.threads, None, 0
        self.vocab = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(self._model))
        self.name = "llama.cpp"
        self.facts = {"version": f"llama-cpp-python {llama.__version__}"}
        self._reset(ROOM)

    def prefill(self, ids):
        self._reset(len(ids) + 1)
        return protocol.timed(lambda: self._forward(ids))[0]

    def decode(self, ids, count):
        self._reset(len(ids) + count)
        token = self._forward(ids)

        def steps():
            nonlocal token
            for _ in range(count):
                token = self._forward([token])

        return protocol.timed(steps)[0]

    def _reset(self, positions: int) -> None:
        """An empty cache with room; its memory is taken at once, so it is no larger than needed."""
        if positions <= self._room:
            llama.llama_memory_clear(llama.llama_get_memory(self._context), True)
            return
        if self._context:
            llama.llama_free(self._context)
        self._room = -(-positions // ROOM) * ROOM
        params = llama.llama_context_default_params()
        params.n_ctx = self._room
        params.n_batch = max(2048, self._room)
        params.n_threads = params.n_threads_batch = self._threads
        self._context = llama.llama_init_from_model(self._model, params)
        self._forward([5])
        llama.llama_memory_clear(llama.llama_get_memory(self._context), True)

    def _forward(self, ids: list[int]) -> int:
        """Append `ids` to the cache; returns the likeliest next token."""
        tokens = (llama.llama_token * len(ids))(*ids)  # the batch only points at it
        code = llama.llama_decode(self._context, llama.llama_batch_get_one(tokens, len(ids)))
        if code != 0:
            raise SystemExit(f"llama_decode returned {code}")
        logits = llama.llama_get_logits_ith(self._context, -1)
        pointer = ctypes.cast(logits, ctypes.POINTER(ctypes.c_float))
        return int(np.ctypeslib.as_array(pointer, (self.vocab,)).argmax())


if __name__ == "__main__":
    protocol.serve(LlamaCpp, protocol.arguments(__doc__))
