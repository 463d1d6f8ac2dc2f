"""The papers behind the models, as BibTeX."""

from __future__ import annotations

from typing import Any

from anharmonic import _checks

_ENTRIES = {
    "cornn": """@inproceedings{rusch2021cornn,
  title = {Coupled Oscillatory Recurrent Neural Network ({coRNN}): An accurate and (gradient)
           stable architecture for learning long time dependencies},
  author = {Rusch, T. Konstantin and Mishra, Siddhartha},
  booktitle = {International Conference on Learning Representations},
  year = {2021},
}""",
    "unicornn": """@inproceedings{rusch2021unicornn,
  title = {{UnICORNN}: A recurrent model for learning very long time dependencies},
  author = {Rusch, T. Konstantin and Mishra, Siddhartha},
  booktitle = {International Conference on Machine Learning},
  year = {2021},
}""",
    "lem": """@inproceedings{rusch2022lem,
  title = {Long Expressive Memory for Sequence Modeling},
  author = {Rusch, T. Konstantin and Mishra, Siddhartha and Erichson, N. Benjamin and
            Mahoney, Michael W.},
  booktitle = {International Conference on Learning Representations},
  year = {2022},
}""",
    "oscillators": """@inproceedings{lanthaler2023oscillators,
  title = {Neural Oscillators are Universal},
  author = {Lanthaler, Samuel and Rusch, T. Konstantin and Mishra, Siddhartha},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2023},
}""",
    "rnn": """@article{elman1990finding,
  title = {Finding structure in time},
  author = {Elman, Jeffrey L.},
  journal = {Cognitive Science},
  volume = {14},
  number = {2},
  pages = {179--211},
  year = {1990},
}""",
    "lstm": """@article{hochreiter1997lstm,
  title = {Long short-term memory},
  author = {Hochreiter, Sepp and Schmidhuber, J{\\"u}rgen},
  journal = {Neural Computation},
  volume = {9},
  number = {8},
  pages = {1735--1780},
  year = {1997},
}""",
    "gru": """@inproceedings{cho2014gru,
  title = {Learning phrase representations using {RNN} encoder-decoder for statistical machine
           translation},
  author = {Cho, Kyunghyun and van Merri{\\"e}nboer, Bart and Gulcehre, Caglar and
            Bahdanau, Dzmitry and Bougares, Fethi and Schwenk, Holger and Bengio, Yoshua},
  booktitle = {Empirical Methods in Natural Language Processing},
  year = {2014},
}""",
    "graphcon": """@inproceedings{rusch2022graphcon,
  title = {Graph-Coupled Oscillator Networks},
  author = {Rusch, T. Konstantin and Chamberlain, Benjamin P. and Rowbottom, James and
            Mishra, Siddhartha and Bronstein, Michael M.},
  booktitle = {International Conference on Machine Learning},
  year = {2022},
}""",
    "g2": """@inproceedings{rusch2023gradient,
  title = {Gradient Gating for Deep Multi-Rate Learning on Graphs},
  author = {Rusch, T. Konstantin and Chamberlain, Benjamin P. and Mahoney, Michael W. and
            Bronstein, Michael M. and Mishra, Siddhartha},
  booktitle = {International Conference on Learning Representations},
  year = {2023},
}""",
    "pyg": """@inproceedings{fey2019pyg,
  title = {Fast Graph Representation Learning with {PyTorch Geometric}},
  author = {Fey, Matthias and Lenssen, Jan E.},
  booktitle = {ICLR Workshop on Representation Learning on Graphs and Manifolds},
  year = {2019},
}""",
    "gcnii": """@inproceedings{chen2020gcnii,
  title = {Simple and Deep Graph Convolutional Networks},
  author = {Chen, Ming and Wei, Zhewei and Huang, Zengfeng and Ding, Bolin and Li, Yaliang},
  booktitle = {International Conference on Machine Learning},
  year = {2020},
}""",
    "antisymmetric": """@inproceedings{chang2019antisymmetric,
  title = {{AntisymmetricRNN}: A Dynamical System View on Recurrent Neural Networks},
  author = {Chang, Bo and Chen, Minmin and Haber, Eldad and Chi, Ed H.},
  booktitle = {International Conference on Learning Representations},
  year = {2019},
}""",
    "exprnn": """@inproceedings{lezcano2019exprnn,
  title = {Cheap Orthogonal Constraints in Neural Networks: A Simple Parametrization of the
           Orthogonal and Unitary Group},
  author = {Lezcano-Casado, Mario and Mart{\\'i}nez-Rubio, David},
  booktitle = {International Conference on Machine Learning},
  year = {2019},
}""",
    "gcn": """@inproceedings{kipf2017gcn,
  title = {Semi-Supervised Classification with Graph Convolutional Networks},
  author = {Kipf, Thomas N. and Welling, Max},
  booktitle = {International Conference on Learning Representations},
  year = {2017},
}""",
    "gat": """@inproceedings{velickovic2018gat,
  title = {Graph Attention Networks},
  author = {Veli{\\v{c}}kovi{\\'c}, Petar and Cucurull, Guillem and Casanova, Arantxa and
            Romero, Adriana and Li{\\`o}, Pietro and Bengio, Yoshua},
  booktitle = {International Conference on Learning Representations},
  year = {2018},
}""",
    "indrnn": """@inproceedings{li2018indrnn,
  title = {Independently Recurrent Neural Network ({IndRNN}): Building A Longer and Deeper {RNN}},
  author = {Li, Shuai and Li, Wanqing and Cook, Chris and Zhu, Ce and Gao, Yanbo},
  booktitle = {IEEE Conference on Computer Vision and Pattern Recognition},
  year = {2018},
}""",
    "fastgrnn": """@inproceedings{kusupati2018fastgrnn,
  title = {{FastGRNN}: A Fast, Accurate, Stable and Tiny Kilobyte Sized Gated Recurrent Neural
           Network},
  author = {Kusupati, Aditya and Singh, Manish and Bhatia, Kush and Kumar, Ashish and
            Jain, Prateek and Varma, Manik},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2018},
}""",
    "lipschitz": """@inproceedings{erichson2021lipschitz,
  title = {Lipschitz Recurrent Neural Networks},
  author = {Erichson, N. Benjamin and Azencot, Omri and Queiruga, Alejandro and
            Hodgkinson, Liam and Mahoney, Michael W.},
  booktitle = {International Conference on Learning Representations},
  year = {2021},
}""",
    "nestaas": """@misc{nestaas2022theoretically,
  title = {Theoretically Motivated Neural {ODE} Architectures for Stable Adjoint Behavior},
  author = {Nestaas, F.},
  year = {2022},
}""",
    "node": """@inproceedings{chen2018neural,
  title = {Neural Ordinary Differential Equations},
  author = {Chen, Ricky T. Q. and Rubanova, Yulia and Bettencourt, Jesse and Duvenaud, David},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2018},
}""",
    "chrono": """@inproceedings{tallec2018chrono,
  title = {Can recurrent neural networks warp time?},
  author = {Tallec, Corentin and Ollivier, Yann},
  booktitle = {International Conference on Learning Representations},
  year = {2018},
}""",
}

_PAPERS = {
    "CoRNN": ["cornn"],
    "UnICORNN": ["unicornn"],
    "LEM": ["lem"],
    "NeuralOscillator": ["oscillators"],
    "MultiLayerNeuralOscillator": ["oscillators"],
    "SkewRNN": ["nestaas"],
    "RNN": ["rnn"],
    "LSTM": ["lstm"],
    "GRU": ["gru"],
    "ChronoLSTM": ["lstm", "chrono"],
    "AntisymmetricRNN": ["antisymmetric"],
    "GatedAntisymmetricRNN": ["antisymmetric"],
    "ExpRNN": ["exprnn"],
    "IndRNN": ["indrnn"],
    "FastRNN": ["fastgrnn"],
    "FastGRNN": ["fastgrnn"],
    "ResonatorBank": ["oscillators"],
    "LipschitzRNN": ["lipschitz"],
    "GraphCON": ["graphcon"],
    "GradientGating": ["g2"],
    "PlainGNN": ["pyg"],
    "GCN": ["gcn"],
    "GAT": ["gat"],
    "GCNII": ["gcnii"],
    "NeuralODE": ["nestaas", "node"],
}


def cite(model: Any) -> str:
    """BibTeX of the papers a model comes from.

    Args:
        model: A model, its class, or its name.

    Raises:
        ValueError: If it is no model of this package.

    Example:
        >>> print(cite("LEM").splitlines()[0])
        @inproceedings{rusch2022lem,
    """
    if isinstance(model, str):
        by_lower = {known.lower(): known for known in _PAPERS}
        name = by_lower.get(model.lower(), model)
        chrono = False
    else:
        kind = model if isinstance(model, type) else type(model)
        name = kind.__name__.removesuffix("Cell").removesuffix("Network")
        if name == "SequenceModel" and not isinstance(model, type):
            return cite(model.layer)
        chrono = getattr(model, "chrono_length", None) is not None
    papers = list(_PAPERS[_checks.choice("model", name, _PAPERS)])
    if chrono and "chrono" not in papers:
        papers.append("chrono")
    return "\n\n".join(_ENTRIES[paper] for paper in papers)
