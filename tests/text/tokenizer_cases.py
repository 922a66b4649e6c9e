"""A few hundred varied texts for tokenizers.

The ids in smollm2_tokens.json are llama.cpp's reading of the same GGUF file. Transformers agrees
but for spaces before a digit: its GGUF reader does not split digits off first, as this vocabulary
was trained to. To record: python tests/text/tokenizer_cases.py (needs llama-cpp-python).
"""

import json
import random
from pathlib import Path

RECORDED = Path(__file__).with_name("smollm2_tokens.json")

FIXED = [
    "", " ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", " \n ", "a", " a", "a ", "A", "é", "ß", "中",
    "😀", "Hello, world!", "Hello   world", "The capital of France is", "Why is the sky blue?",
    "don't can't won't I'll you've they're he'd I'm it's DON'T", "'s 't 're 've 'm 'll 'd '", "1",
    "12", "123", "1234567890", "3.14159", "1,000,000", "10.5e-3", "0x1F", "2024-11-29T12:34:56Z",
    "   1", "a  1", "x = 1;  y = 22", "½ ² Ⅷ ٣ १२३ 四", "100%", "$5.99", "#1 @2 &3",
    "def f(x):\n    return x ** 2\n\n\nprint(f(3))",
    "for (int i = 0; i < n; ++i) { a[i] += b[i]; }", "if x:\n\tpass\n\telse:\n\t\tbreak",
    "<html><body class=\"a\">text</body></html>", "{\"a\": [1, 2.5, null]}",
    "https://example.com/path?q=1&r=%20#frag", "user@example.com", "C:\\Windows\\System32",
    "/usr/local/bin", "snake_case camelCase PascalCase kebab-case SCREAMING_CASE",
    "antidisestablishmentarianism", "Zażółć gęślą jaźń", "Příliš žluťoučký kůň",
    "Größe übermäßig", "ça va où naïve façade", "¿Qué? ¡Sí!", "Привет, мир!", "Γειά σου Κόσμε",
    "שלום עולם", "مرحبا بالعالم", "नमस्ते दुनिया", "สวัสดีชาวโลก", "你好，世界！", "こんにちは世界",
    "カタカナ ひらがな 漢字", "안녕하세요 세계", "Xin chào thế giới", "ქართული", "አማርኛ", "தமிழ்",
    "😀😃😄",
    "👨‍👩‍👧‍👦",
    "🏳️‍🌈", "👍🏽", "🇫🇷🇩🇪", "a😀b", " 😀 ", "❤️", "☕️ 5€", "♠♥♦♣", "→⇒∀∃∈∑∫√∞≈≠≤≥", "\u200b",
    "\u00a0", "a\u00a0b", "\u2028", "\ufeff", "e\u0301", "\u0301", "a\u200db", "\U0001f1eb",
    "\u3000", "\x00", "\x01\x02", "\x7f", "\x1b[31mred\x1b[0m", "a\x00b", "\u0085", "\x0b\x0c",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "<|im_start|>", "a<|im_end|>b",
    "<|im_end|> <|im_end|>", "<|endoftext|>", "<|im_start", "|im_start|>", "<| im_start |>",
    "<repo_name>x<file_sep>y", "<|IM_START|>", "  <|im_start|>  ", "<|im_start|><|im_start|>",
    "\n<|im_end|>\n", "a" * 100, " " * 50, "\n" * 20, "ab" * 40, "1" * 30, "!" * 25, "-" * 80,
    "=" * 40, ". " * 20, "😀" * 10, "中" * 20, "word " * 30, "\t" * 10, " \t \t", "a\n\n\nb",
    "a \n \n b", "end.\n\nStart", "x\r\ny\r\n", "…“quoted”—dash–‘x’", "(((nested)))",
    "[a](b) **bold** _it_ `code` ~~s~~", "- item\n- item\n  - sub", "1. one\n2. two",
    "| a | b |\n|---|---|", "E = mc²", "H₂O", "x² + y² = z²", "\\frac{1}{2}", "∂f/∂x", "5'10\"",
    "rock 'n' roll", "O'Neill", "'tis", "''", "' '", "ALL CAPS SENTENCE", "MiXeD cAsE",
    "iPhone15Pro", "v1.2.3-beta+45", "AT&T", "C++", "F#", "a/b/c", "and/or",
]  # fmt: skip

ALPHABETS = [
    "abcdefghijklmnopqrstuvwxyz     ",
    "ABCdef 0123456789.,;:!?'\"\n\t  ",
    "éüñçßøåæ łžčř αβγδε АБВгд ",
    "中文字漢日本語한국어 ",
    "😀🎉🚀👍🏽\u200d❤️ ab",
    "(){}[]<>=+-*/%&|^~!?:;,.#@$_\\`'\" 01ax\n  ",
    "\u00a0\u2003\u3000\u200b \t\n\r x1",
    "αβ12  \n<|im_start|>",
]


def texts() -> list[str]:
    draw = random.Random(7)
    made = [
        "".join(draw.choice(alphabet) for _ in range(draw.randint(1, 60)))
        for alphabet in ALPHABETS
        for _ in range(20)
    ]
    return list(dict.fromkeys(FIXED + made))


def record():
    from llama_cpp import Llama

    from butter import hub

    model = Llama(hub.aliases()["smollm2"], vocab_only=True, verbose=False)
    lines = []
    for text in texts():
        ids = model.tokenize(text.encode(), add_bos=False, special=True)
        lines.append(json.dumps([text, ids], separators=(",", ":")))
    RECORDED.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    record()
