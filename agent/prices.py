"""What a conversation costs, as far as the model is known."""

from collections.abc import Mapping

PER_MILLION_USD: tuple[tuple[str, float, float], ...] = (
    ("claude-opus", 5.0, 25.0),
    ("claude-sonnet", 3.0, 15.0),
    ("claude-haiku", 1.0, 5.0),
)
"""Start of the model's id, dollars for a million input and output tokens.  List prices; edit them when they change."""

CACHE_WRITE, CACHE_READ = 1.25, 0.1
"""A token written to, or read from, the prompt cache costs so much of an input token."""


def cost_usd(model: str, usage: Mapping[str, int]) -> float | None:
    """Dollars for the token counts of one reply; None for a model that is not in the table."""
    for start, per_input, per_output in PER_MILLION_USD:
        if model.startswith(start):
            read_in = (
                usage.get("input_tokens", 0)
                + usage.get("cache_creation_input_tokens", 0) * CACHE_WRITE
                + usage.get("cache_read_input_tokens", 0) * CACHE_READ
            )
            return (read_in * per_input + usage.get("output_tokens", 0) * per_output) / 1_000_000
    return None
