"""Tree models: any supported library's model as one `TreeEnsemble` of plain arrays."""

from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._trees.labels import category_codes
from fouriershap._trees.readers import read_model

__all__ = ["TreeEnsemble", "category_codes", "read_model"]
