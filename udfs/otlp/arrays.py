"""Arrays of numbers, by what they hold."""

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Unsigned = npt.NDArray[np.uint64]
Codes = npt.NDArray[np.int32]
"""Numbers of distinct things."""
