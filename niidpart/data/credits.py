"""Licence and citation of the data sets by name, for whoever publishes a split of one."""

from typing import NamedTuple

__all__ = ["CREDITS", "Credit", "find_credit"]


class Credit(NamedTuple):
    """What the authors of a data set ask for.

    licence: its identifier on the Hugging Face Hub, "unknown" where the authors state none,
    "other" with `terms` where there is no identifier.
    """

    licence: str
    citation: str
    terms: str = ""


_UCI = "UCI Machine Learning Repository"
_CIFAR = Credit(
    "unknown", "Krizhevsky: Learning Multiple Layers of Features from Tiny Images, 2009"
)

CREDITS = {
    "adult": Credit("cc-by-4.0", f"Becker, Kohavi: Adult, {_UCI}, 1996"),
    "air-quality": Credit(
        "cc-by-4.0",
        "Zhang, Guo, Dong, He, Xu, Chen: Cautionary Tales on Air-Quality Improvement in Beijing, "
        "Proceedings of the Royal Society A 473, 2017",
    ),
    "cifar10": _CIFAR,
    "cifar100": _CIFAR,
    "covtype": Credit("cc-by-4.0", f"Blackard, Dean: Covertype, {_UCI}, 1999"),
    "digits": Credit(
        "cc-by-4.0",
        f"Alpaydin, Kaynak: Optical Recognition of Handwritten Digits, {_UCI}, 1998, "
        "https://doi.org/10.24432/C50P49",
    ),
    "emnist": Credit(
        "other",
        "Cohen, Afshar, Tapson, van Schaik: EMNIST: an extension of MNIST to handwritten letters, "
        "2017",
        "public domain (NIST)",
    ),
    "femnist": Credit(
        "other",
        "Caldas et al.: LEAF: A Benchmark for Federated Settings, 2018",
        "public domain (NIST SD 19); LEAF BSD-2-Clause",
    ),
    "flights": Credit(
        "cc0-1.0",
        "Wickham: nycflights13, flights that departed NYC in 2013, 2014; Bureau of Transportation "
        "Statistics",
    ),
    "fmnist": Credit(
        "mit",
        "Xiao, Rasul, Vollgraf: Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine "
        "Learning Algorithms, 2017",
    ),
    "heart-disease": Credit(
        "cc-by-4.0",
        "Detrano et al.: International Application of a New Probability Algorithm for the "
        f"Diagnosis of Coronary Artery Disease, 1989; {_UCI}, Heart Disease",
    ),
    "kmnist": Credit(
        "cc-by-sa-4.0", "Clanuwat et al.: Deep Learning for Classical Japanese Literature, 2018"
    ),
    "landmine": Credit(
        "unknown",
        "Xue, Liao, Carin, Krishnapuram: Multi-Task Learning for Classification with Dirichlet "
        "Process Priors, JMLR 8, 2007",
    ),
    "mnist": Credit(
        "cc-by-sa-3.0",
        "LeCun, Bottou, Bengio, Haffner: Gradient-Based Learning Applied to Document Recognition, "
        "Proceedings of the IEEE, 1998",
    ),
    "mnist-writers": Credit(
        "cc-by-sa-3.0",
        "Yadav, Bottou: Cold Case: The Lost MNIST Digits, NeurIPS, 2019; LeCun, Bottou, Bengio, "
        "Haffner: Gradient-Based Learning Applied to Document Recognition, 1998",
    ),
    "office-caltech": Credit(
        "unknown",
        "Gong, Shi, Sha, Grauman: Geodesic Flow Kernel for Unsupervised Domain Adaptation, CVPR, "
        "2012",
    ),
    "pacs": Credit(
        "unknown",
        "Li, Yang, Song, Hospedales: Deeper, Broader and Artier Domain Generalization, ICCV, 2017",
    ),
    "parkinsons": Credit(
        "cc-by-4.0",
        "Tsanas, Little, McSharry, Ramig: Accurate Telemonitoring of Parkinson's Disease "
        "Progression by Noninvasive Speech Tests, IEEE TBME 57(4), 2010",
    ),
    "rcv1": Credit(
        "unknown",
        "Lewis, Yang, Rose, Li: RCV1: A New Benchmark Collection for Text Categorization Research, "
        "JMLR 5, 2004",
    ),
    "school": Credit(
        "unknown", "Goldstein: Multilevel Modelling of Survey Data, The Statistician 40, 1991"
    ),
    "shakespeare": Credit(
        "other",
        "Caldas et al.: LEAF: A Benchmark for Federated Settings, 2018",
        "the plays are in the public domain; LEAF BSD-2-Clause",
    ),
    "spoken-digits": Credit(
        "cc-by-sa-4.0", "Jackson et al.: Free Spoken Digit Dataset, version 1.0.10, 2018"
    ),
    "svhn": Credit(
        "other",
        "Netzer et al.: Reading Digits in Natural Images with Unsupervised Feature Learning, NIPS "
        "Workshop, 2011",
        "non-commercial use only",
    ),
    "tiny-imagenet": Credit(
        "other",
        "Le, Yang: Tiny ImageNet Visual Recognition Challenge, CS 231N, Stanford University, 2015",
        "none stated; the images are ImageNet's, for non-commercial research and teaching",
    ),
    "usps": Credit(
        "unknown", "Hull: A Database for Handwritten Text Recognition Research, IEEE PAMI 16, 1994"
    ),
}


def find_credit(source: str) -> Credit | None:
    """Return the credit of a data set by the name of its source.

    None for files of a user's own, and for data that is made and not collected.
    """
    return CREDITS.get(source)
