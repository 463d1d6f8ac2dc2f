"""Recurrent models, one file each."""
