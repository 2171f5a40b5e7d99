"""Explaining on clusters (Spark, Dask, Ray), and explainers in MLflow."""
