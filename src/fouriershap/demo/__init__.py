"""The demo (`make demo`): trees and a neural network on real data beside shap, and a function on bits."""
