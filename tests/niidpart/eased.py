"""What strategies are asked for where few rows, or few parties, have to do."""

# map004's own 40 examples a party so few rows do not have; with two holders of each class there is
# little to draw.
EASED = {"map004": {"redraw_below": 1}, "flower-distribution": {"k": 4, "preassigned": 1}}
OF_FEW_CLASSES = {"flower-distribution"}  # parties are a multiple of them


def fold_classes(name, labels, n_parties=4):
    """Return the labels, of as many classes as there are parties where a strategy needs that."""
    return labels % n_parties if name in OF_FEW_CLASSES else labels
