"""Every way to tamper with a sealed record that we know of, as somebody with the whole database may do it.

Each takes a record without guards, does it, and returns the place that a finding has to name: the number
of a seal (None: any) and the key of a row (None: any).
"""

from tests.tampering import batches, erasures, outside, rows
from tests.tampering.kinds import NEVER, OUTSIDE, TAMPERING, Place, Tamper

__all__ = ["NEVER", "OUTSIDE", "TAMPERING", "Place", "Tamper", "batches", "erasures", "outside", "rows"]
