"""Models: ``nn.Module`` only. No training and no data live here."""

from anharmonic.models.registry import canonical_name, list_models, model_class

__all__ = ["canonical_name", "list_models", "model_class"]
