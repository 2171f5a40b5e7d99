"""Small models that are sums of products, with what they say themselves of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Ask = Callable[[Any], Any]


class ProductCase(NamedTuple):
    """A fitted model, the output that is explained, and the model's own word for it."""

    model: Any
    output: str
    ask: Ask


def data(n_rows: int = 60, n_columns: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns)).round(2)
    y = X[:, 0] - X[:, -1] ** 2 + 0.1 * rng.normal(size=n_rows)
    return X, y


def _raw(model: Any) -> Ask:
    return model.decision_function if hasattr(model, "decision_function") else model.predict


def _second(model: Any) -> Ask:
    return lambda rows: model.predict_proba(rows)[:, 1]


def linear() -> dict[str, ProductCase]:
    from sklearn import linear_model as lm
    from sklearn.cross_decomposition import PLSRegression
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.svm import LinearSVC, LinearSVR

    X, y = data()
    Y, two, three = (
        np.column_stack([y, X[:, 1]]),
        y > np.median(y),
        np.digitize(y, np.quantile(y, [0.3, 0.6])),
    )
    positive = np.exp(y / 3)
    regressors = [
        (lm.LinearRegression(), Y),
        *(
            (kind, y)
            for kind in (lm.Ridge(), lm.LassoCV(), lm.ElasticNet(), lm.BayesianRidge(), lm.HuberRegressor())
        ),
        *(
            (kind, y)
            for kind in (lm.OrthogonalMatchingPursuit(), lm.QuantileRegressor(alpha=0.01), LinearSVR())
        ),
        *((kind, y) for kind in (lm.SGDRegressor(random_state=0), lm.ARDRegression())),
        (lm.MultiTaskLasso(alpha=0.1), Y),
        (PLSRegression(), Y),
    ]
    classifiers = [
        (lm.LogisticRegression(), three),
        *((kind, two) for kind in (lm.Perceptron(), lm.RidgeClassifier())),
        *(
            (kind, three)
            for kind in (LinearSVC(), LinearDiscriminantAnalysis(), lm.SGDClassifier(random_state=0))
        ),
    ]
    cases = {}
    for estimator, target in regressors + classifiers:
        model = estimator.fit(X, target)
        cases[type(model).__name__] = ProductCase(model, "raw", _raw(model))
    one_class = lm.SGDOneClassSVM(random_state=0).fit(X)
    cases["SGDOneClassSVM"] = ProductCase(one_class, "raw", one_class.decision_function)
    poisson = lm.PoissonRegressor(alpha=0.01).fit(X, positive)
    cases["PoissonRegressor"] = ProductCase(poisson, "raw", lambda rows: np.log(poisson.predict(rows)))
    for estimator in (poisson, lm.TweedieRegressor(power=1.5, alpha=0.01), lm.GammaRegressor(alpha=0.01)):
        model = estimator.fit(X, positive)
        cases[f"{type(model).__name__}, response"] = ProductCase(model, "response", model.predict)
    steep = lm.LogisticRegression(C=100).fit(X, two)
    cases["LogisticRegression, probability"] = ProductCase(steep, "probability", _second(steep))
    discriminant = LinearDiscriminantAnalysis().fit(X, two)
    cases["LinearDiscriminantAnalysis, response"] = ProductCase(
        discriminant, "response", _second(discriminant)
    )
    losses = lm.SGDClassifier(loss="log_loss", random_state=0).fit(X, two)
    cases["SGDClassifier, probability"] = ProductCase(losses, "probability", _second(losses))
    several = lm.LogisticRegression().fit(X, three)
    cases["LogisticRegression, classes"] = ProductCase(several, "probability", several.predict_proba)
    return cases


def kernels() -> dict[str, ProductCase]:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process import kernels as gp
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

    X, y = data()
    Y, two, three = (
        np.column_stack([y, X[:, 1]]),
        y > np.median(y),
        np.digitize(y, np.quantile(y, [0.3, 0.6])),
    )
    models = {
        "SVR": SVR().fit(X, y),
        "SVR, linear": SVR(kernel="linear").fit(X, y),
        "SVR, poly": SVR(kernel="poly", degree=3, coef0=0.5).fit(X, y),
        "SVR, sigmoid": SVR(kernel="sigmoid", gamma=0.1, coef0=0.2).fit(X, y),
        "NuSVR": NuSVR(gamma=0.3).fit(X, y),
        "SVC": SVC().fit(X, two),
        "NuSVC": NuSVC(kernel="poly", degree=2).fit(X, two),
        "SVC, pairs of classes": SVC(decision_function_shape="ovo").fit(X, three),
        "OneClassSVM": OneClassSVM().fit(X),
        "KernelRidge": KernelRidge(kernel="rbf", alpha=0.1).fit(X, Y),
        "KernelRidge, laplacian": KernelRidge(kernel="laplacian", gamma=0.4).fit(X, y),
        "KernelRidge, polynomial": KernelRidge(kernel="polynomial", degree=2).fit(X, y),
        "KernelRidge, linear": KernelRidge(kernel="linear").fit(X, y),
        "KernelRidge, object": KernelRidge(kernel=gp.RBF(2.0) + 1.5).fit(X, y),
    }
    for name, kernel in {
        "RBF": gp.RBF([0.5, 1, 2, 3]),
        "sum": 2.0 * gp.RBF() + gp.WhiteKernel(0.1) + gp.ConstantKernel(0.5),
        "product": gp.RBF(2.0) * gp.RBF(1.0) * gp.Matern(3.0, nu=np.inf),
        "polynomial": (gp.DotProduct(0.7) + gp.WhiteKernel(1.0)) + gp.DotProduct(0.5) ** 2,
        "power": gp.Exponentiation(gp.RBF(3.0) + gp.ConstantKernel(0.2), 2),
    }.items():
        process = GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None, normalize_y=name != "RBF")
        models[f"GaussianProcessRegressor, {name}"] = process.fit(X, Y if name == "sum" else y)
    return {name: ProductCase(model, "raw", _raw(model)) for name, model in models.items()}


def networks() -> dict[str, ProductCase]:
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    X, y = data()
    Y, two = np.column_stack([y, X[:, 1]]), y > np.median(y)
    options = {"random_state": 0, "max_iter": 60, "learning_rate_init": 0.05}
    made = {
        "tanh": MLPRegressor(hidden_layer_sizes=(5,), activation="tanh", **options).fit(X, y),
        "logistic": MLPRegressor(hidden_layer_sizes=(4,), activation="logistic", **options).fit(X, Y),
        "identity": MLPRegressor(hidden_layer_sizes=(3, 2), activation="identity", **options).fit(X, y),
    }
    cases = {
        f"MLPRegressor, {name}": ProductCase(model, "raw", model.predict) for name, model in made.items()
    }
    classifier = MLPClassifier(hidden_layer_sizes=(4,), activation="tanh", **options).fit(X, two)

    def logit(rows: Any) -> Any:
        share = classifier.predict_proba(rows)
        return np.log(share[:, 1]) - np.log(share[:, 0])

    cases["MLPClassifier"] = ProductCase(classifier, "raw", logit)
    cases["MLPClassifier, probability"] = ProductCase(classifier, "probability", _second(classifier))
    without = MLPClassifier(hidden_layer_sizes=(), **options).fit(X, two)
    cases["MLPClassifier, no layer"] = ProductCase(without, "probability", _second(without))
    return cases


def statsmodels() -> dict[str, ProductCase]:
    import statsmodels.api as sm

    X, y = data()
    two, counts = (y > np.median(y)).astype(float), np.round(np.exp(y / 2))
    noisy = np.where(np.arange(len(y)) % 7 == 0, 1 - two, two)  # no plane tells them apart
    three = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    quiet = {"disp": 0}
    made = {
        "OLS": (sm.OLS(y, X).fit(), "raw"),
        "RLM": (sm.RLM(y, X).fit(), "response"),
        "GLM": (sm.GLM(counts, X, family=sm.families.Poisson()).fit(), "response"),
        "GLM, binomial": (sm.GLM(noisy, X, family=sm.families.Binomial()).fit(), "probability"),
        "Logit": (sm.Logit(noisy, X).fit(**quiet), "probability"),
        "Probit": (sm.Probit(noisy, X).fit(**quiet), "probability"),
        "Poisson": (sm.Poisson(counts, X).fit(**quiet), "response"),
        "NegativeBinomial": (sm.NegativeBinomial(counts, X).fit(**quiet), "response"),
        "MNLogit": (sm.MNLogit(three, X).fit(**quiet), "probability"),
    }
    cases = {name: ProductCase(model, output, model.predict) for name, (model, output) in made.items()}
    bare = made["OLS"][0]._results
    cases["OLS, not wrapped"] = ProductCase(bare, "raw", bare.predict)
    poisson = made["GLM"][0]
    cases["GLM, raw"] = ProductCase(poisson, "raw", lambda rows: np.log(poisson.predict(rows)))
    return cases


def gblinear() -> dict[str, ProductCase]:
    import xgboost

    X, y = data()
    two, three = y > np.median(y), np.digitize(y, np.quantile(y, [0.3, 0.6]))
    options = {"booster": "gblinear", "n_estimators": 5, "n_jobs": 1, "random_state": 0}
    regressor = xgboost.XGBRegressor(**options).fit(X, y)
    classifier = xgboost.XGBClassifier(**options).fit(X, two)
    several = xgboost.XGBClassifier(**options).fit(X, three)
    poisson = xgboost.XGBRegressor(objective="count:poisson", **options).fit(X, np.exp(y / 3))
    return {
        "gblinear": ProductCase(regressor, "raw", regressor.predict),
        "gblinear, Booster": ProductCase(regressor.get_booster(), "raw", regressor.predict),
        "gblinear, probability": ProductCase(classifier, "probability", _second(classifier)),
        "gblinear, classes": ProductCase(
            several, "raw", lambda rows: several.predict(rows, output_margin=True)
        ),
        "gblinear, poisson": ProductCase(poisson, "response", poisson.predict),
    }


FAMILIES = {
    "linear": linear,
    "kernels": kernels,
    "networks": networks,
    "statsmodels": statsmodels,
    "gblinear": gblinear,
}
