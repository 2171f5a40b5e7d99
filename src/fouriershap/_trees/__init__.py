"""Tree models: any supported library's model as one `TreeEnsemble` of plain arrays."""
