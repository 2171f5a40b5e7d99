"""Analyses of many rows: drift, importance, cohorts, interactions and reasons."""
