"""The families of algorithms. Each file of `fltrain/algorithms` names its own, as `FAMILY`."""

FAMILIES = {
    "baseline": "what others are held beside: all share, nobody shares, one holds all",
    "server": "the server steps otherwise than to the mean",
    "fairness": "parties with high losses count more",
    "proximal": "parties are held near the model that they received",
    "control": "what parties or server remember takes the drift out of steps",
    "direction": "the server sends the way that all go, or starts parties along it",
    "flatness": "parties look for minima that are flat",
    "own-layers": "parties keep layers of their own",
    "personal": "each party ends with a model of its own",
    "per-class": "steps know the classes that a party holds",
    "features": "features are compared, shaped or exchanged",
    "distillation": "what the received model answers teaches",
    "clustered": "several models, among which parties choose",
    "privacy": "what is learnt says little of any one party",
    "local-rule": "layers learn by another rule than backpropagation",
}  # in the order in which they are listed
