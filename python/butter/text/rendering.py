"""Running a chat template: its sandbox, its limits, and what its errors become."""

from collections.abc import Iterable, Mapping

from jinja2 import exceptions

from ..errors import ButterError, ConfigError, FileFormatError
from .budget import BUDGET, MAX_VALUE, Budget, TemplateLimit
from .sandbox import Environment, TemplateRefusal


def compiled(name: str, source: str):
    """A template in its sandbox; `name` is for messages."""
    try:
        return Environment().from_string(source)
    except exceptions.TemplateSyntaxError as error:
        raise FileFormatError(f"[template] {name}, line {error.lineno}: {error.message}") from None
    except (Exception, RecursionError, MemoryError) as error:
        raise FileFormatError(
            f"[template] {name}: not compiled: {type(error).__name__}: {error!s:.200}"
        ) from None


def render(name: str, template, variables: Mapping) -> str:
    """What a compiled template writes; `name` is for messages."""
    token = BUDGET.set(Budget())
    try:
        return collect(template.generate(variables))
    except TemplateRefusal as error:
        raise ConfigError(
            f"[template] the model's chat template refuses these messages: {error}"
        ) from None
    except TemplateLimit as error:
        raise FileFormatError(f"[template] {name}: not rendered: {error}") from None
    except exceptions.SecurityError as error:
        raise FileFormatError(f"[template] {name}: reaches outside: {error}") from None
    except (MemoryError, RecursionError) as error:
        raise FileFormatError(f"[template] {name}: not rendered: {type(error).__name__}") from None
    except OverflowError as error:  # the sandbox's, of a range
        raise FileFormatError(f"[template] {name}: not rendered: {error}") from None
    except ButterError:
        raise
    except Exception as error:  # whatever an expression in a template can raise
        raise ConfigError(
            f"[template] {name}: cannot render these messages: {type(error).__name__}: {error}"
        ) from None
    finally:
        BUDGET.reset(token)


def collect(pieces: Iterable[str]) -> str:
    texts, size = [], 0
    for piece in pieces:
        size += len(piece)
        if size > MAX_VALUE:
            raise TemplateLimit(f"more than {MAX_VALUE} characters of text")
        texts.append(piece)
    return "".join(texts)
