"""Models: ``nn.Module`` only. No training and no data live here."""

from anharmonic.models.registry import canonical_name, layer_class, list_models

__all__ = ["canonical_name", "layer_class", "list_models"]
