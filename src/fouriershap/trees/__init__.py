"""Tree models: any supported library's model as one `TreeEnsemble` of plain arrays."""

from fouriershap.trees._ensemble import TreeEnsemble
from fouriershap.trees._labels import category_codes
from fouriershap.trees.readers import read_model

__all__ = ["TreeEnsemble", "category_codes", "read_model"]
