"""How skewed a split is: the MAP estimate of beta, and measures of skew with what chance alone would make of them (docs/heterogeneity.md)."""

from .features import FeatureSkew, feature_skew
from .map_beta import map_beta, map_beta_overall
from .measure import measure
from .measures import MEASURES
from .skew import Measure, Skew

__all__ = ["MEASURES", "FeatureSkew", "Measure", "Skew", "feature_skew", "map_beta", "map_beta_overall", "measure"]
