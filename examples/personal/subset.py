"""Writes the first 10,000 training images of CIFAR-10: python subset.py DATA_ROOT."""

import sys

import numpy as np

import niidpart

data = niidpart.load("cifar10", sys.argv[1])
rows = np.arange(10000)
np.savez("cifar10-10000.npz", x=data.features(rows), y=data.labels[rows])
