"""Letters by their numbers, as a model reads them."""

from torch import Tensor, nn


def count_letters(module: nn.Module) -> int:
    """Return how many letters a model reads, 0 for one that reads other examples."""
    counts = (part.num_embeddings for part in module.modules() if isinstance(part, Letters))
    return next(counts, 0)


class Letters(nn.Embedding):
    """A vector for each letter: whole numbers [B, T], of any dtype, to [B, T, D].

    The first layer of a model of text. Examples of a run whose model has it have to be numbers of
    its letters, which is looked at before anything is trained.

    Parameters
    ----------
    num_embeddings : int
        How many letters there are; their numbers begin with 0.
    embedding_dim : int
        Numbers of a letter's vector, D.

    Examples
    --------
    >>> import torch
    >>> from fltrain.models import Letters
    >>> Letters(80, 8)(torch.tensor([[0.0, 79.0]])).shape
    torch.Size([1, 2, 8])
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return the vectors of letters.

        Parameters
        ----------
        x : Tensor
            [B, T] whole numbers, of any dtype.

        Returns
        -------
        Tensor
            [B, T, D].
        """
        return super().forward(x.long())
