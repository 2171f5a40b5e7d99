"""scikit-learn: trees, sums of trees, linear models, kernel machines, networks; Pipelines."""
