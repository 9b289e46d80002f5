"""`ingest.sampling` of conf: of which APIs only one line of n is kept, and how large n is.

A broker logs every request or none, so that what is too much is left out at ingest.
"""

import difflib
from typing import Annotated

from pydantic import AfterValidator

from quotaflow.schemas.events import SAMPLED_APIS

_MOST = 1_000
_EXACT = 1e-9


def one_of(fraction: float) -> int:
    """How many lines a kept one stands for."""
    return round(1 / fraction)


def _checked(sampling: dict[str, float]) -> dict[str, float]:
    for api, fraction in sampling.items():
        if api not in SAMPLED_APIS:
            near = difflib.get_close_matches(api.upper(), SAMPLED_APIS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"those that may: {_LISTED}"
            raise ValueError(
                f"{api} is no API that may be sampled ({hint}): rules need each line of all others"
            )
        whole = one_of(fraction) if fraction > 0 else 0
        if not 1 <= whole <= _MOST or abs(fraction * whole - 1) > _EXACT:
            raise ValueError(
                f"{api}: {fraction} must be 1, 1/2, 1/3 ... 1/{_MOST}: write 0.5, 0.25, 0.1, 0.01"
            )
    return sampling


_LISTED = ", ".join(SAMPLED_APIS)
Sampling = Annotated[dict[str, float], AfterValidator(_checked)]
"""API -> which part of its lines is kept."""
