"""Golden text: `pytest tests/iron --update-golden` writes it anew, for review as a diff."""

from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


@pytest.fixture
def golden(request):
    """Compare text with tests/iron/golden/<name>."""
    update = request.config.getoption("--update-golden", default=False)

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if update:
            path.write_text(text)
        assert path.exists(), f"{path} is missing: run pytest tests/iron --update-golden"
        assert text == path.read_text(), f"{name} changed: review with --update-golden"

    return compare
