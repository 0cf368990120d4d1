"""What a call cost by a list of prices (genai-prices, the extra ``prices``): an estimate, or nothing.

The list is the one inside the installed package and is never fetched. What it does not know has no price,
which is not a price of 0.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_crashlab.provider.base import Basis, Cost

if TYPE_CHECKING:
    from pytest_crashlab.provider.base import Call

_PACKAGE = "genai_prices"
# Names of OpenTelemetry's convention that the list does not know.
_NAMED = {"x_ai": "x-ai", "gcp.gen_ai": "google"}


@cache
def source() -> str | None:
    """The list of prices with its version and the digest of its data; None where none is installed."""
    from importlib import metadata

    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        return None
    data = Path(spec.origin).parent / "data.py"
    digest = hashlib.sha256(data.read_bytes()).hexdigest()[:12] if data.is_file() else "unknown"
    return f"genai-prices {metadata.version('genai-prices')} sha256:{digest}"


def price(call: Call) -> Cost | None:
    """What ``call`` is estimated to have cost, by the prices of its day; None where that is not known."""
    listed = source()
    if listed is None or not call.tokens.known or call.provider in {"scripted", "openai-compatible"}:
        return None
    for model in (call.answered_by, call.model):
        usd = None if model is None else _usd(call, model)
        if usd is not None:
            return Cost(usd=usd, basis=Basis.ESTIMATED, source=listed)
    return None


def _usd(call: Call, model: str) -> float | None:
    prices: Any = importlib.import_module(_PACKAGE)
    tokens = call.tokens
    known = {
        "input_tokens": tokens.input,
        "output_tokens": tokens.output,
        "cache_read_tokens": tokens.cache_read,
        "cache_write_tokens": tokens.cache_write,
    }
    usage = prices.Usage(**{name: count for name, count in known.items() if count})
    when = datetime.fromtimestamp(call.start, UTC)
    try:
        found = prices.calc_price(
            usage,
            model_ref=model,
            provider_id=_NAMED.get(call.provider, call.provider),
            genai_request_timestamp=when,
        )
    except (LookupError, ValueError):
        return None
    usd = float(found.total_price)
    return usd if usd > 0 or not (tokens.input or tokens.output) else None
