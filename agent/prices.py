"""What a conversation costs, as far as the model is known."""

from collections.abc import Mapping

PER_MILLION_USD: dict[str, tuple[float, float]] = {
    "claude-haiku-5": (0.10, 0.50),
    "claude-sonnet-5": (2.0, 10.0),
    "claude-opus-5-5": (4.0, 20.0),
    "claude-fable-5": (10.0, 50.0),
    "claude-haiku": (1.0, 5.0),
    "claude-sonnet": (3.0, 15.0),
    "claude-opus": (5.0, 25.0),
}
"""Start of the model's id: dollars for a million input and output tokens.  List prices; edit them when they change."""

CACHE_WRITE, CACHE_READ = 1.25, 0.1
"""A token written to, or read from, the prompt cache costs so much of an input token."""


def cost_usd(model: str, usage: Mapping[str, int]) -> float | None:
    """Estimated dollars for the token counts of one reply; None for a model that is not in the table."""
    known = [start for start in PER_MILLION_USD if model.startswith(start)]
    if not known:
        return None
    per_input, per_output = PER_MILLION_USD[max(known, key=len)]
    read_in = (
        usage.get("input_tokens", 0)
        + usage.get("cache_creation_input_tokens", 0) * CACHE_WRITE
        + usage.get("cache_read_input_tokens", 0) * CACHE_READ
    )
    return (read_in * per_input + usage.get("output_tokens", 0) * per_output) / 1_000_000
