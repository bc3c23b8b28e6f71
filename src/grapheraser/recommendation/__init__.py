"""Recommendation: rank items for users, and forget users, items and interactions exactly."""

from grapheraser.recommendation.eraser import Recommender

__all__ = ["Recommender"]
