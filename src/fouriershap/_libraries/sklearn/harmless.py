"""Classes inside scikit-learn's models that skops does not trust by itself; loading them runs no other code."""

_BY_MODULE = {
    # Of trees and of histogram boosting, most of which skops knows since 0.14.
    "tree._tree": "Tree",
    "ensemble._hist_gradient_boosting.predictor": "TreePredictor",
    "ensemble._hist_gradient_boosting.binning": "_BinMapper",
    "utils.validation": "check_array",
    "compose._column_transformer": "_RemainderColsList",
    "_loss.link": "Interval IdentityLink LogLink LogitLink HalfLogitLink MultinomialLogit",
    "_loss.loss": "HalfSquaredError AbsoluteError PinballLoss HalfPoissonLoss HalfGammaLoss HalfBinomialLoss "
    "HalfMultinomialLoss HalfTweedieLoss HalfTweedieLossIdentity",
    # Of models that are black boxes.
    "calibration": "_CalibratedClassifier _SigmoidCalibration",
    "neural_network._stochastic_optimizers": "AdamOptimizer SGDOptimizer",
    "gaussian_process.kernels": "RBF Matern RationalQuadratic ConstantKernel WhiteKernel DotProduct Sum Product "
    "Exponentiation",
    "gaussian_process._gpc": "_BinaryGaussianProcessClassifierLaplace",
    "metrics._dist_metrics": "EuclideanDistance64",
    "neighbors._kd_tree": "KDTree",
    "neighbors._ball_tree": "BallTree",
}
HARMLESS = frozenset(
    f"sklearn.{module}.{name}" for module, names in _BY_MODULE.items() for name in names.split()
)
