"""Modules: sequence layers, graph networks, neural ODEs, readouts, and saving them."""

from anharmonic.nn.graph.arguments import activation_function, check_input
from anharmonic.nn.graph.attention import AdditiveAttentionCoupling, AttentionCoupling
from anharmonic.nn.graph.convolutions import library, make_conv
from anharmonic.nn.graph.convolve import convolve, convolve_with_start
from anharmonic.nn.graph.encoder_decoder import GraphNetwork
from anharmonic.nn.graph.gradient_gating import GradientGating
from anharmonic.nn.graph.graphcon import GraphCON
from anharmonic.nn.graph.layerwise import infer_by_layers
from anharmonic.nn.heads import SequenceModel
from anharmonic.nn.registry import canonical_name, list_models, model_class
from anharmonic.nn.resonators.features import ResonatorFeatures
from anharmonic.nn.resonators.model import Resonators
from anharmonic.nn.resonators.stream import ResonatorStream
from anharmonic.nn.sequence.cornn import CoRNN
from anharmonic.nn.sequence.layer import SequenceLayer, StepLayer
from anharmonic.nn.sequence.lem import LEM
from anharmonic.nn.sequence.unicornn import UnICORNN
from anharmonic.nn.stability import warn_unstable
from anharmonic.nn.store import from_pretrained, save_pretrained
from anharmonic.ops import HiddenState, State

__all__ = [
    "LEM",
    "AdditiveAttentionCoupling",
    "AttentionCoupling",
    "CoRNN",
    "GradientGating",
    "GraphCON",
    "GraphNetwork",
    "HiddenState",
    "ResonatorFeatures",
    "ResonatorStream",
    "Resonators",
    "SequenceLayer",
    "SequenceModel",
    "State",
    "StepLayer",
    "UnICORNN",
    "activation_function",
    "canonical_name",
    "check_input",
    "convolve",
    "convolve_with_start",
    "from_pretrained",
    "infer_by_layers",
    "library",
    "list_models",
    "make_conv",
    "model_class",
    "save_pretrained",
    "warn_unstable",
]
