"""What Qwen's image processor asks of torchvision, which has no build for torch's CPU wheels here.

Pixels come out as torchvision's own would up to rounding; how many there are is the processor's
own arithmetic. What only other processors ask for can be imported, not called.
"""

from __future__ import annotations

__version__ = "0.0"
