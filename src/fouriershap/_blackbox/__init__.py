"""Black boxes: a callable and data in, a representation with a certificate out."""
