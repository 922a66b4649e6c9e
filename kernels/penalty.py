"""What a logit counts as: penalties, bias and temperature, in this order.

Nothing stores the result: the kernels that need it compute it again, which costs less than a
second row of logits would in memory traffic.
"""

from iron import dim, f32, inline, step

GENERATED = 0x7FFFFFFF  # of a count: how often generated; the top bit says: in the prompt
COLDEST = 2.0**-60  # lower temperatures count as this one, so that quotients stay finite
INF = float("inf")


@inline
def divisor():
    """The temperature to divide by; 1 where it is 0."""
    return max(step.temperature, COLDEST) if step.temperature > 0.0 else 1.0


@inline
def penalized(row, i):
    """Logit i of the last row with penalties and bias, NaN included.

    Repetition divides a positive logit and multiplies a negative one, for tokens of prompt or
    output. Presence is subtracted once from tokens of the output, frequency once per occurrence.
    bias counts if step.use_bias is set.
    """
    logits, counts, bias, _ = row
    x = logits[dim("rowsL") - 1, i]
    repetition, presence, frequency = step.repetition, step.presence, step.frequency
    if repetition != 1.0 or presence != 0.0 or frequency != 0.0 or step.use_bias != 0:
        seen = counts[i]
        times = seen & GENERATED
        changed = x / repetition if x > 0.0 else x * repetition
        x = changed if seen != 0 else x
        x = x - (presence + frequency * f32(times) if times != 0 else 0.0)
        if step.use_bias != 0:
            x = x + bias[i]
    return x


@inline
def tempered(row, i):
    """What token i counts as: its penalized logit by the temperature; NaN becomes -inf."""
    x = penalized(row, i)
    return x / divisor() if x == x else -INF
