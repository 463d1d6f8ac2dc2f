"""The papers' downloaded sequence data sets: addresses, checksums and functions that read them."""

from anharmonic.data import RemoteFile, Source
from anharmonic_papers.tasks.prepare import (
    prepare_beijing_air,
    prepare_cifar10,
    prepare_fsdd,
    prepare_mnist,
)

_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/"
MNIST = Source(
    "mnist",
    (
        RemoteFile(_MNIST + "train-images-idx3-ubyte.gz", "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        RemoteFile(_MNIST + "train-labels-idx1-ubyte.gz", "md5:d53e105ee54ea40749a09fcbcd1e9432"),
        RemoteFile(_MNIST + "t10k-images-idx3-ubyte.gz", "md5:9fb629c4189551a2d022fa330f9573f3"),
        RemoteFile(_MNIST + "t10k-labels-idx1-ubyte.gz", "md5:ec29112dd5afa0611ce80d1b7f02629c"),
    ),
    prepare_mnist,
    "8fc8fc4f0343f34ece1fcfdfb65f0801fac48030ce7c70e62bbb62f64ee2e65b",
)
CIFAR10 = Source(
    "cifar10",
    (
        RemoteFile(
            "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            "md5:c32a1d4ab5d03f1284b67883e8d87530",
        ),
    ),
    prepare_cifar10,
    None,  # the archive's own checksum is verified when it is downloaded
    {
        "x_train": ((50000, 3, 32, 32), "uint8"),
        "y_train": ((50000,), "uint8"),
        "x_test": ((10000, 3, 32, 32), "uint8"),
        "y_test": ((10000,), "uint8"),
    },
)
CIFAR10_JPEG = Source(
    "cifar10_jpeg",
    digest="6383b92cbe05c9adebf82c01d1040da8b5710ad995cb485c83bf7b7cb027bc69",
)
FSDD = Source(
    "fsdd",
    (
        RemoteFile(
            "https://github.com/Jakobovski/free-spoken-digit-dataset/archive/26eb9aaf.zip",
            None,  # archives made by the host are not stable byte for byte: the content is checked
        ),
    ),
    prepare_fsdd,
    "13947e657508149240ff5d0930b9bbe053c19b219327ff6720f9121faff0b32f",
)
BEIJING_AIR = Source(
    "beijing_air",
    (
        RemoteFile(
            "https://archive.ics.uci.edu/static/public/501/beijing+multi+site+air+quality+data.zip",
            None,  # the content is checked
        ),
    ),
    prepare_beijing_air,
    "a6c8722e25a37e5496a402b9b2267a5fa2d3701c2e2be8cee62181990daf5981",
)
IMDB = Source("imdb", digest="7b110e36c4e59e62825f4ebc2cf1193dc19fe48e23a6179b594be1671597f237")
IMDB_GLOVE = Source(
    "imdb_glove50", digest="ff04baf6d0272df8febf4401b69ae3a0e947ff8eab106de90e24f49252782098"
)
PTB = Source("ptb", digest="c1745ae9fda5255abd497b142c1614e66b70130d7ff22ed28c40617ed1b69086")
WATCH_IMU = Source(
    "watch_imu", digest="138cdb9c0981c3832e09955f112eea2495e07284cb84e4a02a7185be9c114278"
)
WORMS = Source(
    "Worms",
    digest="93d14a1adffd402212ef398f4f22713971d5d56c3a4039e252395e08bc253c92",
    folder="ucr",
)
