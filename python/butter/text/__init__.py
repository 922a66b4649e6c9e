"""Text in and out: tokenizers, chat templates, streaming and stop strings."""
