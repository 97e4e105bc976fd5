"""Files that people and tools give a model: pictures, PDFs and texts, as parts of a message.

All that has to be known of a file is found out here, once, where it enters: what a request is made of later follows
from the log alone. Whether a model takes a part is not decided here but by its wire.
"""

from __future__ import annotations

from .taking import CannotAttach as CannotAttach
from .taking import attach as attach
from .taking import check_sizes as check_sizes
from .taking import take as take
from .taking import take_file as take_file
