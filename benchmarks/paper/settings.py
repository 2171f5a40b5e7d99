"""Every number that decides how long a run takes, in one place."""

from __future__ import annotations

from dataclasses import dataclass, field

DATASETS = ("entacmaea", "sgemm", "gb1", "avgfp")
N_BITS = {"entacmaea": 13, "sgemm": 40, "gb1": 80, "avgfp": 236}
LABELS = {
    "entacmaea": "Entacmaea, network (n = 13)",
    "sgemm": "SGEMM, network (n = 40)",
    "gb1": "GB1, random forest (n = 80)",
    "avgfp": "avGFP, CatBoost (n = 236)",
}
NETWORKS = ("entacmaea", "sgemm")
DEPTH = 5  # of the tree models of Figures 2 and 5 and of Table 4; the paper's Table 3 names it


@dataclass(frozen=True, eq=False)
class Settings:
    """What a run does; `QUICK` and `FULL` below."""

    name: str
    seed: int = 0
    # models
    epochs: dict[str, int] = field(default_factory=lambda: {"entacmaea": 100, "sgemm": 12})
    most_training_rows: int = 1_000_000
    forest_trees: int = 100
    # Figures 1 and 4
    transform_terms: tuple[int, ...] = (10, 30, 100, 300, 1000)
    transform_depths: tuple[int, ...] = (3, 5, 7)
    accuracy_depths: tuple[int, ...] = (1, 3, 5, 7)
    cube_points: int = 10_000
    # Figure 2
    sizes: tuple[int, ...] = (10, 20, 30, 40)  # of background rows, and of explained rows
    sampler_rows: int = 10  # rows for which the samplers beside KernelSHAP are run: their cost is per row
    sampler_background: int = 10
    linreg_backgrounds: tuple[int, ...] = (10, 40)
    sampler_seconds: float = 6.0  # per peer and background; a peer that takes longer explains fewer rows
    sampler_limit: float = 25.0  # and one that has not explained a row by then is left out
    terms: dict[str, int] = field(
        default_factory=lambda: {"entacmaea": 1000, "sgemm": 1000, "gb1": 2500, "avgfp": 500}
    )
    thresholds: tuple[float, ...] = (1e-4, 2e-4, 4e-4, 8e-4, 1.6e-3, 3.2e-3, 6.4e-3, 0.0125, 0.025, 0.05)
    budgets: tuple[int, ...] = (2_000, 5_000, 20_000)  # queries of BlackBoxExplainer
    data_rows: int = 2_000  # training rows from which its queries are put together
    truth_samples: int = 6_000  # coalitions per row and block of ten background rows, SGEMM
    fastshap_rows: int = 6_400
    fastshap_subsets: int = 16
    fastshap_epochs: int = 30
    fastshap_background: int = 10
    linreg_samples: tuple[int, ...] = (128, 512, 2048)
    # Figure 3
    depths: tuple[int, ...] = (3, 4, 5, 6, 7, 8, 10)
    tree_sizes: int = 100
    tree_repeats: int = 5
    tree_trees: int = 20
    tree_terms: int = 20_000  # the paper's route, spectrum and closed form, up to so many terms
    # tables
    table2_sizes: tuple[int, ...] = (100, 200, 300, 400)
    table2_methods: tuple[tuple[str, int], ...] = (
        ("swht", 20_000),
        ("trees", 5_000),
        ("waves", 5_000),
        ("waves", 20_000),
        ("auto", 20_000),
    )
    table2_rows: int = 2  # rows that KernelSHAP explains; the others are extrapolated
    factors: tuple[float, ...] = (0.02, 0.03, 0.04, 0.1, 1.0, 2.0, 10.0)


FULL = Settings("full")
QUICK = Settings(
    "quick",
    epochs={"entacmaea": 30, "sgemm": 4},
    most_training_rows=50_000,
    forest_trees=20,
    transform_terms=(10, 100, 300),
    transform_depths=(3, 5),
    accuracy_depths=(3, 5, 7),
    cube_points=2_000,
    sizes=(10, 20),
    sampler_rows=2,
    linreg_backgrounds=(10,),
    sampler_seconds=5.0,
    sampler_limit=20.0,
    terms={"entacmaea": 300, "sgemm": 300, "gb1": 300, "avgfp": 300},
    thresholds=(1e-4, 1.6e-3, 0.025),
    budgets=(1_000,),
    data_rows=500,
    truth_samples=3_000,
    fastshap_rows=640,
    fastshap_epochs=5,
    linreg_samples=(128, 512),
    depths=(3, 5, 8),
    tree_repeats=2,
    tree_terms=2_000,
    table2_sizes=(100, 400),
    table2_methods=(("swht", 5_000), ("auto", 1_000)),
    table2_rows=1,
    factors=(0.02, 0.1, 1.0),
)
