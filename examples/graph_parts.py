"""A deep GraphCON on Cora, trained on the whole graph and on parts of it.

python examples/graph_parts.py --depth 32

PyTorch Geometric's NeighborLoader and ClusterLoader need the packages pyg-lib or torch-sparse;
RandomNodeLoader does without. "Neighbourhoods" are parts as a cluster loader makes them: runs of a
breadth-first order, so that most neighbours of a node are in its part. All are tested on the whole
graph. Needs the extras train and graph; Cora is downloaded, or read from ANHARMONIC_DATA.
"""

import argparse
import statistics

import torch
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import breadth_first_order
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.loader import RandomNodeLoader

from anharmonic.data import make_task
from anharmonic.nn import infer_by_layers, model_class

PARTS = 8


def neighbourhoods(data):
    """The nodes cut into parts of equal size along a breadth-first order."""
    count = data.num_nodes
    ones = torch.ones(data.num_edges)
    graph = coo_matrix((ones, data.edge_index.numpy()), shape=(count, count)).tocsr()
    seen = torch.zeros(count, dtype=torch.bool)
    order = []
    for start in range(count):
        if not seen[start]:
            found = torch.from_numpy(breadth_first_order(graph, start, False, False).copy()).long()
            order.append(found[~seen[found]])
            seen[found] = True
    return [data.subgraph(nodes) for nodes in torch.cat(order).chunk(PARTS)]


def kept(parts, data):
    """Share of the edges that are inside of a part."""
    return sum(part.num_edges for part in parts) / data.num_edges


def trained(data, parts_of_epoch, depth, epochs, seed):
    """Accuracy in percent on the test nodes of the whole graph."""
    torch.manual_seed(seed)
    options = {"hidden_size": 64, "num_layers": depth, "dt": min(0.9, 4 / depth), "dropout": 0.2}
    model = model_class("GraphCON")(data.num_features, 7, input_dropout=0.5, **options)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(epochs):
        model.train()
        for part in parts_of_epoch():
            if part.train_mask.any():
                optimizer.zero_grad()
                found = model(part.x, part.edge_index)[part.train_mask]
                functional.cross_entropy(found, part.y[part.train_mask]).backward()
                optimizer.step()
    answer = infer_by_layers(model, data.x, data.edge_index, nodes_per_part=4096).argmax(1)
    return 100 * (answer == data.y)[data.test_mask].double().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--depth", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    loaders = make_task("cora").loaders(0, 1)
    batches = {"train": loaders.train(0)[0], "test": loaders.test[0]}
    x, edges = batches["train"].x, batches["train"].graph.edge_index
    y, masks = torch.zeros(len(x), dtype=torch.long), {}
    for name, batch in batches.items():
        masks[f"{name}_mask"] = torch.zeros(len(x), dtype=torch.bool)
        masks[f"{name}_mask"][batch.rows] = True
        y[batch.rows] = batch.y
    data = Data(x=x, edge_index=edges, y=y, **masks)
    near = neighbourhoods(data)
    ways = {
        "the whole graph": lambda: [data],
        f"{PARTS} random parts": lambda: RandomNodeLoader(data, PARTS, shuffle=True),
        f"{PARTS} neighbourhoods": lambda: near,
    }
    for name, parts in ways.items():
        found = [
            trained(data, parts, arguments.depth, arguments.epochs, seed)
            for seed in range(arguments.seeds)
        ]
        print(
            f"{name}: {kept(parts(), data):.0%} of the edges; test accuracy "
            f"{statistics.fmean(found):.1f} ± {statistics.pstdev(found):.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
