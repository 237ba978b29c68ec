"""How many bits a whole number takes."""


def count_index_bits(n: int) -> int:
    """Return the bits that tell n things apart, all codes of one length; at least one."""
    return max(1, (n - 1).bit_length())
