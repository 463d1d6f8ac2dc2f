"""The memory of deep graph networks: measured per process, said in a table."""

import pytest

from harness.graph_memory import measure, table

pytest.importorskip("torch_geometric", reason="the convolution is PyG's")


def test_every_case_is_measured_and_shown(in_this_process):
    said = []
    result = measure(layers=4, width=2, nodes=6, edges=9, say=said.append)
    titles = [one["title"] for one in result["measurements"]]
    assert len(titles) == len(set(titles)) == len(said) == 8
    # The kernel counts pages in batches: a step that needs nothing may end a little below zero.
    assert all(one["finite"] and one["peak_mb"] > -1 for one in result["measurements"])
    text = table(result)
    assert all(f"| {title} |" in text for title in titles)
    assert "4 layers of width 2, 6 nodes, 9 edges" in text
